"""Codes of the operator's key and ledger (docs/ledger.md)."""

from symbi_recover.core.findings import Code, attention, refused, remark

_KEY: dict[str, Code] = {
    "operator_home_unsafe": refused(
        "The folder of the operator's own files cannot be used.",
        "It has another owner, is open to others, is a link, or lies in a folder that holds claims or leases. Keys and evidence must not share a folder.",
        "Choose another folder with `SYMBI_RECOVER_HOME`, or give it mode 0700.",
    ),
    "operator_key_missing": refused(
        "The operator has no signing key.",
        "Acts can be recorded in a ledger only with a key of the operator's own.",
        "Make one with `key init`, or bring one with `key import`.",
    ),
    "operator_key_unsafe": refused(
        "The file of the operator's key is not a private file of 32 bytes.",
        "It has another owner, is open to others, is a link, has several names, or another size. Others may know the key.",
        "Find out who changed it. A key that others may have read must be replaced.",
    ),
    "operator_key_exists": refused(
        "The operator already has another key.",
        "A key is never replaced, because the ledger that it signed could not go on.",
        "Keep the old key and its ledger together in a folder of their own, and begin with an empty one.",
    ),
    "operator_public_differs": refused(
        "The file `operator.pub` does not hold the public half of the operator's key.",
        "It was left by another key, or changed. `ledger verify` believes it, so it is never rewritten silently.",
        "If the key is the right one, move `operator.pub` away and run `key init`, which writes it anew; else bring the right key back.",
    ),
    "key_import_unreadable": refused(
        "A private key cannot be read from the file.",
        "An Ed25519 key in PEM (PKCS 8) or OpenSSH form is read; an encrypted one needs `--passphrase-file`.",
        "Check the file and its passphrase.",
    ),
    "key_import_unsafe": refused(
        "The file with the private key is not private.",
        "A key that others could read is not a secret.",
        "Make a new key, or restrict the file if nobody else could ever read it.",
    ),
    "passphrase_unusable": refused(
        "The file with the passphrase cannot be used.",
        "It has another owner, is open to others, has several names, or is longer than 4,096 bytes. A passphrase is never cut short.",
        "Put the passphrase alone into a file of your own with mode 0600.",
    ),
}

_LEDGER: dict[str, Code] = {
    "ledger_missing": refused(
        "There is no ledger.",
        "It begins with the first act that is recorded. A ledger that is gone shows nothing about what was done.",
        "Before the first act nothing needs to be done; after it, look for the ledger in copies of the operator's folder.",
    ),
    "ledger_unsafe": refused(
        "The ledger is not a private file.",
        "It has another owner, is open to others, is a link, has several names, or is larger than 64 MiB.",
        "Find out who changed it; keep it, and begin a new one in another folder.",
    ),
    "ledger_busy": refused(
        "Another process held the lock of the ledger for two seconds.",
        "One act is written at a time.",
        "Try again.",
    ),
    "ledger_line_invalid": refused(
        "A complete line of the ledger is no record.",
        "The toolkit never writes such a line, and an interrupted write leaves no line end.",
        "Keep the file, look for an earlier copy, and begin a new ledger in another folder.",
    ),
    "ledger_signature": refused(
        "A line of the ledger is not signed with the key.",
        "It was changed, or belongs to another operator.",
        "Check that this is the right public key; keep the file.",
    ),
    "ledger_chain": refused(
        "A record of the ledger does not follow the one before.",
        "Records were removed, moved, repeated, or come from another ledger of the same key.",
        "Look for an earlier copy, and compare.",
    ),
    "ledger_head_differs": refused(
        "The ledger does not hold the record that was expected.",
        "It was cut off or written anew since the head was noted.",
        "Compare with the copy that the head was taken from.",
    ),
    "ledger_torn": attention(
        "The ledger ends in a fragment.",
        "A write was interrupted. The fragment is kept; the next act accounts for its bytes and goes on behind it.",
        "Run the interrupted command again.",
    ),
    "ledger_continued": remark(
        "The ledger holds a fragment that a later record accounts for.",
        "A write was interrupted there. Whether the fragment was ever more cannot be known.",
        "Nothing needs to be done.",
    ),
    "ledger_act_open": attention(
        "The ledger holds an intent without an outcome.",
        "The command was stopped, or could not write the outcome. What it intended may or may not have happened.",
        "Run the same command again: it finishes what is left and records it.",
    ),
    "ledger_key_from_ledger": attention(
        "The ledger was verified with the key that it names itself.",
        "Whoever wrote it chose that key; it is consistent in itself, but not authenticated.",
        "Give the operator's public key with `--public-key`.",
    ),
    "ledger_outcome_unrecorded": refused(
        "The act was carried out, but its outcome could not be written to the ledger.",
        "The receipt stands. The ledger holds the intent alone.",
        "Run the same command again: it changes nothing more and records the outcome.",
    ),
}

CODES: dict[str, Code] = _KEY | _LEDGER
