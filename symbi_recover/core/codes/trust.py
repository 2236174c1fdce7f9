"""Codes of keys that an operator gives or pins."""

from symbi_recover.core.findings import Code, refused

CODES: dict[str, Code] = {
    "trust_file_unusable": refused(
        "The file of pinned keys cannot be used.",
        "It is not private enough, cannot be written, or holds a line that is not an entry. Nothing in it was believed.",
        "Put the file right, or make it anew with `trust add`.",
    ),
    "trust_file_busy": refused(
        "Another process held the lock of the pinned keys for two seconds.",
        "One change is made at a time, or one operator's entry could be lost by another's. Nothing was changed.",
        "Try again; if it stays so, look at the process that is named.",
    ),
    "trust_no_key": refused(
        "The trust file that was given pins no key for this project, so nothing was verified.",
        "An empty list of trusted keys is not the same as trusting what is found.",
        "Pin the project's key with `trust add`, or give it with `--public-key`.",
    ),
    "trust_entry_missing": refused(
        "No pinned key is as described.",
        "Entries are told apart by key, project and host.",
        "See `trust list`.",
    ),
}
