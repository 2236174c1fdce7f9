"""Codes of claims, invocation stores, reviews and resolution receipts (invocation.md sections 4 to 14, 16, 19)."""

from symbi_recover.core.findings import Code, attention, refused, remark

_ARGUMENTS: dict[str, Code] = {
    "project_missing": refused(
        "The project folder that was asked for cannot be resolved.",
        "It is not there, or a folder above it may not be searched. Nothing was examined.",
        "Check the path and the mounts.",
    ),
    "projects_unread": refused(
        "No project with an invocation store was found, but not every folder could be looked into.",
        "Folders of other accounts and faulty devices cannot be searched for projects. What lies in them is not known.",
        "Run as the account that owns the projects, or name one of them with `--project`.",
    ),
    "invocation_id_invalid": refused(
        "The invocation id that was asked for is not in a form that is read.",
        "The id is given by the caller of the runtime and is compared by value. Commands that the runtime does not have take only the hyphenated form in lower case, that of `invocation list`.",
        "Take the id from `invocation list`.",
    ),
    "scope_invalid": refused(
        "The scope that was asked for is empty or longer than 256 bytes.",
        "No invocation can have such a scope.",
        "Take the scope from `invocation list`.",
    ),
}

_STORE: dict[str, Code] = {
    "store_missing": refused(
        "The project has no invocation store.",
        "No invocation was ever claimed here, or the store was moved away. It does not show that nothing ran.",
        "Check that this is the project folder, and look for a copy of `.symbiont/invocations`.",
    ),
    "store_behind_link": refused(
        "A folder between the project and its evidence is a symbolic link or no folder.",
        "The runtime makes real folders. A link is not followed, because it may lead to evidence that somebody else prepared; the runtime itself looks only at the last folder.",
        "Find out who made the link, then examine the real project folder.",
    ),
    "store_not_private": refused(
        "An evidence folder is not private: it has another owner, other rights than 0700, or is no real folder.",
        "The runtime makes it with mode 0700. Others may have changed what lies in it.",
        "Find out who changed the folder. Do not change its rights before a copy has been made.",
    ),
    "store_file_not_private": refused(
        "A claim, receipt or lock file is not a private regular file with one link and a bounded size.",
        "The runtime writes such files with mode 0600 and one name. A second link can be left by an interrupted receipt on file systems without atomic renames.",
        "Look at owner, mode, links and size, which are shown, and find out who changed them.",
    ),
    "store_busy": refused(
        "A process held the lock of the invocation store for two seconds.",
        "Somebody creates a claim, saves a result, or publishes a receipt; or hangs while doing so.",
        "Try again. If it stays so, look for the process that is shown.",
    ),
    "store_entry_stray": attention(
        "The invocation store holds an entry that blocks every write to it.",
        "A folder, a link, a file with several names, or one that is not private makes the runtime refuse new claims and receipts, without naming it.",
        "Find out where the entry comes from. Move it out of the store, but never a claim or receipt: without its claim an invocation can be started again. `symbi-recover runbook show blocked-invocation-store` says how to put those right where they are.",
    ),
    "store_entry_unknown": remark(
        "The invocation store holds a file that the runtime does not write.",
        "It blocks nothing, but counts against the capacity of the store.",
        "Find out where the file comes from, and move it out of the store.",
    ),
    "store_temporary_left": remark(
        "A receipt was being written when its writer was stopped.",
        "The temporary file stays for ever and counts against the capacity of the store. It never became a receipt.",
        "Keep a copy of it; then it can be removed while no process uses the store.",
    ),
    "store_receipt_linked": attention(
        "A receipt and a temporary file are two names of one file.",
        "The writer was stopped between making the second name and removing the first. The runtime refuses the receipt until the temporary name is gone.",
        "Verify the receipt; then remove the temporary name while no process uses the store.",
    ),
    "store_capacity": attention(
        "The invocation store is full, or nearly so.",
        "The runtime refuses new claims and receipts above 4096 entries or 64 MiB, and never removes any.",
        "Plan to move finished projects to a new folder; claims must not be thrown away.",
    ),
    "journal_without_claim": attention(
        "A run journal lies in the project, but no claim names it.",
        "Runs that were not opened as an invocation have none, delegated runs for example; or its claim is gone, and then its invocation can be repeated.",
        "Look at the journal with `audit inspect`, and find out whether its claim was removed.",
    ),
    "receipt_without_claim": attention(
        "A receipt lies in the store, but the claim that it belongs to does not.",
        "The claim was moved or removed. A resolution receipt still keeps the runtime from starting the invocation again; a publication receipt does not.",
        "Look for the claim in a copy of the project.",
    ),
}

_CLAIM: dict[str, Code] = {
    "claim_live": refused(
        "A process still owns the invocation.",
        "It holds the lock of the claim, so the work may go on at this moment and what is on disk may change.",
        "Wait for it to end, or stop it in an orderly way; the process that holds the lock is shown.",
    ),
    "claim_owner_unknown": remark(
        "Whether a process owns the invocation cannot be known from here.",
        "The kernel's list of locks is not complete in this place: another PID namespace, a network file system, or a /proc that cannot be read.",
        "Repeat the command on the host itself before deciding anything.",
    ),
    "claim_incomplete": refused(
        "The claim lacks its first or its second record.",
        "An owner that is stopped while it writes the claim leaves one like this before it executes anything; so does damage to a claim whose run went on. The claim alone does not tell which. The runtime can never resolve it, and its id stays taken.",
        "Keep it. Look for a journal of the invocation in `.symbiont/governed`, for an earlier copy of the claim, and in what surrounds the agent for traces of the work; until then it may have been done.",
    ),
    "claim_malformed": refused(
        "A complete line of the claim is not a record.",
        "The runtime never writes such a line. An editor, a damaged disk or another program changed the file.",
        "Look for an earlier copy of the claim, and keep this one.",
    ),
    "claim_admission": refused(
        "The claim's version and its admission do not fit together, or the admission is too large.",
        "Version 1 has none, version 2 has an object of at most 65536 bytes. A newer runtime may write other versions.",
        "Use the tool of the runtime's version that wrote the claim.",
    ),
    "claim_identity": refused(
        "The claim is for another invocation, names a journal elsewhere, or has more records than it can have.",
        "A claim that was copied, renamed or moved with its project no longer fits: it holds the absolute path of its journal.",
        "Examine the project at the path it was written at.",
    ),
    "claim_too_large": refused(
        "The claim is larger than 2 MiB.",
        "The runtime never writes such a claim.",
        "Find out who wrote to the file.",
    ),
    "claim_key_invalid": refused(
        "The public key that the claim names is not 64 hexadecimal digits.",
        "Without a key no record of the journal can be verified.",
        "Keep the claim, and look for an earlier copy of it. The journal alone can be verified by `audit inspect`, with the key that was kept.",
    ),
    "claim_key_from_evidence": remark(
        "The journal was verified with the key that the unsigned claim names.",
        "Whoever can write claim and journal can forge both. Such evidence is consistent in itself, but not authenticated.",
        "Give the key that was kept elsewhere with `--public-key`, or pin it with `trust add`.",
    ),
    "claim_key_differs": refused(
        "The claim names another key than the one that is trusted.",
        "The evidence was signed by somebody else, or the project's key was replaced.",
        "Compare both keys with what was kept when the project was set up.",
    ),
    "claim_misplaced": attention(
        "The claim's file name does not belong to the scope and id in it.",
        "The runtime looks a claim up by that name, so this one is never found, and its invocation could be started again.",
        "Find out who renamed or copied the file.",
    ),
    "claim_without_journal": attention(
        "The journal that the claim names is not there.",
        "The owner was stopped before it made the journal, or the journal was moved or removed. It does not show that nothing happened.",
        "Look for the journal in copies and backups of the project.",
    ),
    "claim_torn": remark(
        "Bytes follow the last complete record of the claim.",
        "The owner was stopped while it saved its result, or something else was appended. The bytes are hashed, never read.",
        "Review the invocation as an unresolved one.",
    ),
    "claim_changing": refused(
        "Claim or journal kept changing while they were read.",
        "A writer is at work although no lock shows it. No verdict is given about a mixture of two states.",
        "Wait for the writer to end, or examine a copy.",
    ),
}

_JOURNAL: dict[str, Code] = {
    "journal_not_private": refused(
        "The run journal is not a private regular file with one link.",
        "The runtime writes it with mode 0600 and one name. Others may have read or changed it.",
        "Look at owner, mode and links, which are shown, and find out who changed them.",
    ),
    "journal_unbound": refused(
        "The signed journal does not name this invocation.",
        "Its first record must repeat scope, id, request hash and admission of the claim. A journal of another invocation was put in its place, or the claim was changed.",
        "Look at the first record with `audit show`, and compare it with the claim.",
    ),
    "journal_principal": refused(
        "The journal belongs to another agent than the claim.",
        "Claim and journal were not written by the same run.",
        "Look for the journal of the agent that the claim names.",
    ),
}

_RECEIPT: dict[str, Code] = {
    "receipt_malformed": refused(
        "A receipt cannot be read.",
        "The runtime writes it under a temporary name first, so a torn one is not left by a crash of the program. A power loss or a changed file can leave one. It is present and invalid, never absent.",
        "Keep it, and look for a copy.",
    ),
    "receipt_signature": refused(
        "The signature of a receipt does not hold under the invocation's key.",
        "The receipt was changed, belongs to another kind of document, or was signed with another key.",
        "Do not rely on it; find out who wrote it.",
    ),
    "receipt_stale": refused(
        "A receipt is signed, but not for the claim and journal that are there now.",
        "Claim or journal changed after the operator reviewed them, for example by bytes that a writer appended later.",
        "Find out what changed since; the receipt shows the hashes that were reviewed.",
    ),
    "receipt_respelled": remark(
        "A receipt is valid, but not spelled as the runtime writes it.",
        "The runtime checks the signature over its own spelling, so white space, member order and time format of the file are not protected.",
        "Find out who rewrote the file.",
    ),
    "receipt_hidden": attention(
        "A receipt is there that the runtime's command does not show, because it fails first.",
        "A link at the candidate's or target's name, or an unsafe folder, ends the runtime's command before it reads the receipt.",
        "Read the receipt that is shown, and put right what hides it.",
    ),
    "resolution_overrides": remark(
        "An operator's resolution covers an invocation whose result is saved and verified.",
        "The runtime would not have made such a receipt; whoever holds the project's key can.",
        "Find out who signed it, and why.",
    ),
    "review_rules": refused(
        "A review breaks one of the rules for what may be signed.",
        "It needs effects_stopped true, a rationale of 1 to 8192 bytes, and 1 to 32 evidence references of at most 2048 bytes with a SHA-256 each.",
        "Correct the review.",
    ),
    "review_malformed": refused(
        "The review file is not a review.",
        "A member is missing, unknown or of the wrong type, or the file is not one JSON value.",
        "Write it anew from `invocation draft-review`.",
    ),
    "review_kind": refused(
        "The review is not a regular file.",
        "Only a plain file of at most 128 KiB is read.",
        "Give the file itself.",
    ),
    "review_too_large": refused(
        "The review file is larger than 128 KiB.",
        "A review holds references to evidence, not the evidence.",
        "Shorten it.",
    ),
}

CODES: dict[str, Code] = _ARGUMENTS | _STORE | _CLAIM | _JOURNAL | _RECEIPT
