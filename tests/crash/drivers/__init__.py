"""Starters of commands whose view of the host a crash test must hold still."""
