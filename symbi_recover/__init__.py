"""Forensics and recovery for interrupted or suspect agent runs of the Symbiont runtime."""

__version__ = "0.1.0"
