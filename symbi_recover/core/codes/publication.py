"""Codes of file publications and their receipts (publication.md)."""

from symbi_recover.core.findings import Code, attention, refused, remark

_INTENT: dict[str, Code] = {
    "publication_id_invalid": refused(
        "The publication id that was asked for is not a UUID.",
        "Publications are named by the id in their signed intent.",
        "Take the id from `invocation list` or from the effects in `invocation inspect`.",
    ),
    "publication_no_effects": refused(
        "The invocation's journal is empty, so it cannot have published anything.",
        "An intent is signed before the file gets its final name.",
        "Check the invocation id.",
    ),
    "publication_unknown": refused(
        "The journal holds no signed intent for this publication.",
        "Without one nothing authorises a recovery, even if a candidate file lies there.",
        "Check the publication id against the effects in `invocation inspect`.",
    ),
    "publication_intent_invalid": refused(
        "A signed publication intent breaks the rules for intents.",
        "Its size, candidate name, hash or target name is not one that the runtime writes. Another program used the key.",
        "Treat the signing key as used by others.",
    ),
    "publication_path_invalid": refused(
        "The output path in a signed intent is not a plain relative path.",
        "Empty parts, dots, colons, commas, braces, backslashes and line ends are not allowed.",
        "Treat the signing key as used by others.",
    ),
    "publication_path_argument": refused(
        "The output path in a signed intent is an argument name in braces.",
        "The runtime replaces such names before it signs.",
        "Treat the signing key as used by others.",
    ),
    "publication_repeated": remark(
        "The journal holds two intents with one publication id.",
        "The runtime looks only at the first, in silence.",
        "Look at both records with `audit show`.",
    ),
}

_PARENT: dict[str, Code] = {
    "publication_parent_relative": refused(
        "The parent folder in a signed intent is not an absolute path.",
        "The runtime signs absolute paths only.",
        "Treat the signing key as used by others.",
    ),
    "publication_parent_invalid": refused(
        "The parent folder in a signed intent contains `..`.",
        "The runtime does not walk upwards.",
        "Treat the signing key as used by others.",
    ),
    "publication_parent_unreachable": refused(
        "The parent folder of a publication cannot be reached without following a link.",
        "A component of its path is missing, is a link, or may not be opened.",
        "Check the mounts and the path; restore the folder that was there, if it was moved.",
    ),
    "publication_parent_changed": refused(
        "Another folder lies at the path of the publication's parent.",
        "Folders are recognised by device and inode. A folder that was copied or restored from a backup is another one; after a restart a device may have another number.",
        "Compare the recorded and the present numbers, which are shown.",
    ),
    "publication_parent_loose": remark(
        "Others may write into the parent folder of a publication.",
        "The runtime accepts it. Whoever can write there can replace or remove candidate and target.",
        "Take the write right away from group and others before recovering.",
    ),
}

_STATE: dict[str, Code] = {
    "publication_ready": attention(
        "The candidate is complete and waits for its final name.",
        "The run was stopped between the signed intent and the rename.",
        "Finish it with `invocation file-recover`, before the invocation is reconciled: afterwards it is refused.",
    ),
    "publication_unacknowledged": attention(
        "The file has its final name, but nothing signed says so.",
        "The run was stopped between the rename and the record of it.",
        "Acknowledge it with `invocation file-recover`, or name it as evidence in a review.",
    ),
    "publication_missing": attention(
        "Neither candidate nor target is there.",
        "The file was moved or removed after the intent was signed, or the file system lost it.",
        "Look for the file; then decide with a review.",
    ),
    "publication_conflict": attention(
        "Something else lies at the candidate's or the target's name.",
        "The file was changed, linked, replaced, or somebody else made the target. It is never repaired automatically.",
        "Look at what differs, which is shown. Settle it with whoever it belongs to, and look again with `invocation file-inspect`: while the candidate is intact, the publication can be ready again. A review gives the file up for good.",
    ),
    "publication_identity_unconfirmed": attention(
        "The content is as promised, but the numbers of folder or file changed, so identity cannot be confirmed.",
        "Device numbers may change when a host restarts or a file system is mounted again, and every container sees the layers of an overlay under numbers of its own. The journal does not record which start of the host it belongs to, so a change cannot be proven harmless.",
        "Find out whether the file system was mounted anew since, or whether the run was in another container; with the recorded numbers the publication is ready again. A review gives it up for good; before one, copy the bytes, and let it name their hash.",
    ),
    "publication_content_elsewhere": remark(
        "The content is what was promised, but the file is another one.",
        "Layered file systems, restored backups and copies keep the bytes and change the identity. The content alone never proves that it is the published file.",
        "Find out how the file came there; then decide with a review that names its hash.",
    ),
    "publication_name_unreadable": refused(
        "What lies at the candidate's or the target's name cannot be opened.",
        "A symbolic link, a socket, or a file without the right to read it.",
        "Look at what is there, which is shown, and find out who put it there.",
    ),
    "publication_orphan": remark(
        "A candidate file lies beside a publication, but no signed intent names it.",
        "A run was stopped before it had signed the intent, or the file belongs to another project. Nothing authorises its recovery.",
        "Find out which run made it; never rename it by hand.",
    ),
    "publication_receipt_differs": refused(
        "The publication receipt is signed for other evidence.",
        "Claim, journal or intent are not those that were recovered.",
        "Find out what changed since; the receipt shows the hashes.",
    ),
}

CODES: dict[str, Code] = _INTENT | _PARENT | _STATE
