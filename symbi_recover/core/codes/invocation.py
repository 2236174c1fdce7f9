"""Codes of the invocation part."""

from symbi_recover.core.findings import Code

CODES: dict[str, Code] = {}
