"""Codes of the retirement part."""

from symbi_recover.core.findings import Code

CODES: dict[str, Code] = {}
