"""Codes of keys that an operator gives or pins."""

from symbi_recover.core.findings import Code, Severity

CODES: dict[str, Code] = {
    "trust_file_unusable": Code(
        severity=Severity.REFUSED,
        meaning="The file of pinned keys cannot be used.",
        why="It is missing, not private enough, or holds a line that is not an entry. Nothing in it was believed.",
        next="Put the file right, or make it anew with `trust add`.",
    ),
    "trust_file_busy": Code(
        severity=Severity.REFUSED,
        meaning="Another process held the lock of the pinned keys for two seconds.",
        why="One change is made at a time, or one operator's entry could be lost by another's. Nothing was changed.",
        next="Try again; if it stays so, look at the process that is named.",
    ),
    "trust_no_key": Code(
        severity=Severity.REFUSED,
        meaning="The trust file that was given pins no key for this project, so nothing was verified.",
        why="An empty list of trusted keys is not the same as trusting what is found.",
        next="Pin the project's key with `trust add`, or give it with `--public-key`.",
    ),
    "trust_entry_missing": Code(
        severity=Severity.REFUSED,
        meaning="No pinned key is as described.",
        why="Entries are told apart by key, project and host.",
        next="See `trust list`.",
    ),
}
