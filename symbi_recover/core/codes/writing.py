"""Codes of the writing half: locks, durable writes, assessments and recoveries (invocation.md 13, publication.md 9)."""

from symbi_recover.core.findings import Code, attention, refused, remark

_SYSTEM: dict[str, Code] = {
    "write_failed": refused(
        "A file could not be written or made durable.",
        "The device is full, read-only or faulty, or a right is missing. What was begun was taken back as far as it could be.",
        "Put right what the system names, then run the same command again.",
    ),
    "sync_failed": refused(
        "The system could not confirm that data is on the device.",
        "The new name may or may not survive a power failure.",
        "Look at the device and its log, then run the same command again.",
    ),
    "sync_unconfirmed": remark(
        "This file system cannot confirm that a new name is on the device.",
        "It does not support the synchronisation of folders.",
        "Nothing can be done here; look again after the next start of the host.",
    ),
    "rename_unsupported": refused(
        "The file system cannot give a name without the risk of replacing a file.",
        "It lacks RENAME_NOREPLACE, or refuses it here. There is no other way that never overwrites; nothing was changed.",
        "Move the project to a file system that has it, such as ext4, xfs or btrfs.",
    ),
    "lock_uncertain": refused(
        "Whether a lock is held cannot be known for certain here.",
        "The file system refuses locks, does not answer, or lies on another machine, so that two writers could each believe to be alone.",
        "Run the command on the machine that holds the file system, with all other writers stopped.",
    ),
}

_RESOLUTION: dict[str, Code] = {
    "resolution_exists": refused(
        "Another resolution of this invocation is already recorded.",
        "A resolution is never replaced or withdrawn.",
        "Read the one that is there with `invocation inspect`.",
    ),
    "review_stale": refused(
        "The evidence is not what was reviewed.",
        "Claim or journal changed since, or the review is for another invocation.",
        "Inspect it again, and review what is there now.",
    ),
    "result_recorded": refused(
        "The invocation has a saved and verified result.",
        "There is nothing that a person would have to decide.",
        "Nothing needs to be done.",
    ),
    "audit_key_missing": refused(
        "The project's signing key is not there.",
        "A receipt must be signed with the key that signed the journal.",
        "Restore `.symbiont/governed/audit-signing.key` from a safe copy.",
    ),
    "audit_key_unsafe": refused(
        "The project's signing key is not a private file of 32 bytes.",
        "Others may have read or replaced it.",
        "Find out who changed it, before anything is signed with it.",
    ),
    "audit_key_differs": refused(
        "The project's signing key is not the one that signed the journal.",
        "It was replaced since, or the claim is from another project.",
        "Restore the original key from a safe copy.",
    ),
    "evidence_moved": refused(
        "The evidence changed while the receipt was being made.",
        "A writer is at work that holds no lock.",
        "Stop it, then inspect again.",
    ),
    "receipt_taken": refused(
        "Somebody else published this receipt meanwhile.",
        "Nothing was replaced.",
        "Run the same command again; it compares with the receipt that is there.",
    ),
    "receipt_unconfirmed": refused(
        "The receipt that was just published cannot be found or does not read back.",
        "Something else removed or changed it.",
        "Find out what writes to the store, then run the same command again.",
    ),
    "cron_update_failed": refused(
        "The resolution is saved, but the schedule's history could not be updated.",
        "The receipt is in force. The schedule still counts the occurrence as unresolved.",
        "Put right what is named, then run the same command with the same review again.",
    ),
    "cron_update_unconfirmed": refused(
        "The resolution is saved and the schedule's history is up to date, but the system could not confirm that the history is on the device.",
        "A power failure may undo the history's update; the receipt is not concerned.",
        "Look at the device, then run the same command with the same review again.",
    ),
    "cron_history_untouched": remark(
        "The schedule's history was left as it is.",
        "There is no schedule database, it has no such occurrence, or it was up to date.",
        "Make sure that this is the database that the scheduler uses.",
    ),
    "cron_store_bound": remark(
        "A schedule database that belonged to no project was bound to this one.",
        "The runtime does the same whenever it opens one.",
        "Make sure that it was the right database.",
    ),
    "review_exists": refused(
        "There is already another file where the review was to be written.",
        "A file is never replaced.",
        "Choose another name with `--output`.",
    ),
    "review_evidence": refused(
        "A file that was named as evidence cannot be used.",
        "It must be a regular file that can be read, with a path of at most 2048 bytes of UTF-8.",
        "Name another file, or copy it to a plain place.",
    ),
    "review_among_evidence": refused(
        "The review would be written among the evidence.",
        "A stray file in a store stops every write to it.",
        "Choose another place with `--output`.",
    ),
    "nothing_to_review": refused(
        "The invocation waits for no decision.",
        "Its result is saved, or an operator signed what happened.",
        "Nothing needs to be done.",
    ),
    "publication_would_be_lost": attention(
        "A promised file may still be published, and a resolution closes that door.",
        "After an invocation is resolved, none of its publications can be recovered.",
        "Settle the publication first, if the file is wanted: `invocation file-inspect` says how.",
    ),
}

_PUBLICATION: dict[str, Code] = {
    "publication_conflicts": refused(
        "The candidate is missing, or something else lies at one of the two names.",
        "A conflict is never repaired automatically, and nothing is replaced.",
        "Look at it with `invocation file-inspect`, and settle there what stands in the way; a review gives the file up for good.",
    ),
    "publication_output_changed": refused(
        "The file was recovered before, and is no longer what it was then.",
        "Somebody changed, moved or removed it after the receipt was written.",
        "Find out who; the receipt shows what it was.",
    ),
    "publication_resolved": refused(
        "An operator has resolved the invocation, so none of its files can be recovered any more.",
        "A resolution states how things stood; a later publication would contradict it.",
        "Read the resolution with `invocation inspect`.",
    ),
    "publication_candidate_changed": refused(
        "The candidate is not the file that was signed.",
        "Another file took its name, or its content changed. It was not published.",
        "Look at it with `invocation file-inspect`, and find out who writes into the folder.",
    ),
    "publication_target_taken": refused(
        "Something took the final name meanwhile.",
        "Nothing was replaced; the candidate has its own name again.",
        "Look at it with `invocation file-inspect`.",
    ),
    "publication_parent_moved": refused(
        "The folder was moved or exchanged while the file was being published.",
        "The file has its final name in the folder that was signed, which is no longer at its path.",
        "Find the folder by its device and inode numbers, which are shown.",
    ),
    "publication_unsynced": refused(
        "The file has its final name, but the system could not confirm that this is on the device.",
        "A power failure may undo it.",
        "Look at the device, then run the same command again.",
    ),
    "publication_not_retained": refused(
        "The target now exists, but is not what was signed.",
        "Something changed it during or after the rename. There is no receipt.",
        "Examine the target before anybody uses it.",
    ),
    "publication_held": attention(
        "The candidate lies in the holding folder of an interrupted recovery.",
        "The recovery was stopped between taking the candidate aside and giving it its final name, and could not put it back.",
        "Run the same `invocation file-recover` again; it puts the candidate back and goes on.",
    ),
    "file_receipt_too_large": refused(
        "The receipt would be larger than a receipt may be.",
        "It repeats snapshot and intent; theirs are too long.",
        "Decide with a review instead.",
    ),
    "file_receipt_unconfirmed": refused(
        "The file was recovered, but its receipt cannot be read back.",
        "Something else removed or changed it.",
        "Find out what writes to the store, then run the same command again.",
    ),
}

CODES: dict[str, Code] = _SYSTEM | _RESOLUTION | _PUBLICATION
