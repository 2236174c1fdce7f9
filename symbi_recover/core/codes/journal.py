"""Codes of run journals: why one is refused (journal.md section 16), and hints about its writer (section 17)."""

from symbi_recover.core.findings import Code, attention, info, refused, remark

_COPY = "Preserve a copy, and compare with another copy or a receipt that names this journal."
_ASK = "Ask who else holds the signing key, and which runtime version ran."
_KEY_HOLDER = "The signature is good, so a holder of the key wrote this; another program, another runtime version, or a defect."
_LIFECYCLE = (
    "The signatures hold, but the records do not fit together, so nothing can be concluded from them. "
    + _KEY_HOLDER
)
_BUDGET = (
    "The recorded reservations and settlements do not add up as the runtime's own ledger would. "
    + _KEY_HOLDER
)

CODES: dict[str, Code] = {
    "journal_kind": refused(
        "The journal is not a regular file, or is larger than 64 MiB.",
        "The runtime writes regular files and stops at the limit.",
        "Name the right file.",
    ),
    "record_oversized": refused(
        "A record or the unfinished end of the file is longer than 1 MiB, or the file grew past 64 MiB.",
        "The runtime never writes such a line; damage may have removed a line feed.",
        _COPY,
    ),
    "record_incomplete": refused(
        "The journal ends in a fragment without line feed, which strict verification refuses.",
        "An interrupted append leaves one; so does somebody who cuts the file.",
        "Use `audit inspect`, which says what the records before the fragment prove.",
    ),
    "record_malformed": refused(
        "A complete line is not a record that the runtime's reader takes.",
        "Damage, an editor, a foreign program, or a newer runtime. What the line says is not evidence of anything.",
        _COPY,
    ),
    "key_not_a_point": refused(
        "The public key is not a point on the curve.",
        "A typing error, or not an Ed25519 key.",
        "Fetch the key again from where it is kept.",
    ),
    "key_weak": refused(
        "The public key has small order, so any message can be given a signature under it.",
        "No honest key is like this; somebody may have put it where a key was expected.",
        "Find out where the key came from, and fetch the real one.",
    ),
    "signature_length": refused("A signature does not have 64 bytes.", "Damage, or a foreign writer.", _COPY),
    "signature_scalar": refused(
        "The second half of a signature is not below the group order.",
        "Such a signature is a known way to make a second signature out of a good one; the runtime never writes it.",
        _COPY,
    ),
    "signature_invalid": refused(
        "A signature does not hold for its payload under the given key.",
        "The record was altered, or the key is not the one this journal was signed with.",
        "Check that the key belongs to this project; if it does, preserve a copy of the journal.",
    ),
    "signature_library_unsuitable": refused(
        "The installed libsodium does not follow the strict Ed25519 rule.",
        "Some builds check signatures with cofactor and accept what the runtime refuses.",
        "Install PyNaCl from its own wheels, whose libsodium was measured.",
    ),
    "record_version": refused(
        "A record's version does not fit its run identity.",
        "Version 2 has a run identity, version 1 (a legacy journal) has none, and `audit inspect` always asks for a run.",
        "For a legacy journal use `audit verify` without `--run-id`.",
    ),
    "record_run": refused(
        "A record belongs to another run.",
        "Records were copied from another journal, the file has another run's name, or the wrong run was asked for. The file name never decides.",
        "Check the run id; look for the run that the record names.",
    ),
    "record_principal": refused(
        "A record belongs to another agent than the first record.",
        "Journals of two agents were joined, or a record was copied in.",
        _COPY,
    ),
    "record_repeated": refused(
        "A record stands in the journal twice.",
        "A write was repeated, by a defect, a restored backup or a copy; its signature is good.",
        _COPY,
    ),
    "records_missing": refused(
        "Records are missing.",
        "They were cut out or never reached the disk. What they said cannot be known from this file.",
        _COPY,
    ),
    "records_out_of_order": refused(
        "Records are not in the order of their numbers.", "Lines were moved.", _COPY
    ),
    "link_mismatch": refused(
        "A record does not name the hash of the line before it.",
        "The line before was altered outside its signed part, replaced by another signed line, or re-signed by a key holder.",
        _COPY,
    ),
    "journal_empty": refused(
        "The journal holds no complete record.",
        "Nothing was signed, or all of it is gone. A fragment alone is never authenticated.",
        "Compare with the claim that names this journal; the absence of records does not prove that nothing happened.",
    ),
    "journal_changed": refused(
        "The journal changed while it was being read.",
        "The run may still be active.",
        "Work on a copy, or wait until the run has ended.",
    ),
    "record_after_end": refused("Records follow the end of the run.", _LIFECYCLE, _COPY),
    "start_invalid": refused(
        "A run start is repeated, not first, or names another agent.", _LIFECYCLE, _COPY
    ),
    "approval_without_fingerprint": refused("An approved tool call has no fingerprint.", _LIFECYCLE, _COPY),
    "effect_repeated": refused(
        "An effect starts twice, or there are more than 32,768 effects.", _LIFECYCLE, _COPY
    ),
    "finish_without_start": refused("An effect finishes that never started.", _LIFECYCLE, _COPY),
    "finish_repeated": refused("An effect finishes twice.", _LIFECYCLE, _COPY),
    "budget_root_repeated": refused(
        "A shared budget is opened twice, or with the nil identity.", _BUDGET, _COPY
    ),
    "budget_reservation_identity": refused(
        "A reservation has no open budget, or a bad identity.", _BUDGET, _COPY
    ),
    "budget_amount_overflow": refused("A reservation is larger than the ledger can count.", _BUDGET, _COPY),
    "budget_allowance_shape": refused(
        "A reservation has no output, or a malformed ancestry.", _BUDGET, _COPY
    ),
    "budget_ancestry": refused("The scopes of a reservation are not linked up to the root.", _BUDGET, _COPY),
    "budget_child_allowance": refused("A scope allows more than its parent.", _BUDGET, _COPY),
    "budget_scope_changed": refused("A known scope has another parent or limit than before.", _BUDGET, _COPY),
    "budget_overdrawn": refused("A reservation exceeds what was left.", _BUDGET, _COPY),
    "budget_settlement_root": refused("A settlement names another budget.", _BUDGET, _COPY),
    "budget_settlement_unknown": refused("A settlement has no reservation.", _BUDGET, _COPY),
    "budget_settlement_repeated": refused("A reservation is settled twice.", _BUDGET, _COPY),
    "budget_settlement_outcome": refused(
        "A settlement's outcome contradicts its token counts.", _BUDGET, _COPY
    ),
    "head_mismatch": refused(
        "The journal does not contain the record that was expected at that sequence.",
        "Records were cut off the end, or the history was written anew by a key holder. The signatures alone cannot show this.",
        "Find the copy from which the expected hash was taken.",
    ),
    "not_verified": refused(
        "There was nothing to check with, so the journal was not verified.",
        "This is not the same as a failed verification: no key was given, and none is pinned for the project.",
        "Give `--public-key`, or pin the project's key with `trust add`.",
    ),
    "anchor_required": refused(
        "An anchor was required, and no expected record hash was given.",
        "Without one, nothing outside the journal says where it ends, so this was not verified.",
        "Give `--expect-head SEQUENCE:HASH`.",
    ),
    "head_not_anchored": info(
        "Nothing outside the journal says where it ends.",
        "A journal cut at the end of a record verifies like one that was interrupted there.",
        "Give `--expect-head SEQUENCE:HASH` from a receipt, a claim snapshot or an earlier report.",
    ),
    "not_authenticated": attention(
        "The signatures were checked with a key found beside the evidence.",
        "The journal is consistent in itself, but whoever can write it can also write the key.",
        "Give the key from where it is kept: `--public-key` or `--trust`.",
    ),
    "run_incomplete": attention(
        "The run has no signed start, no signed end, or an unauthenticated tail.",
        "The process was interrupted, is still running, or records were cut off.",
        "Find out whether the run is still active; if not, reconcile its invocation.",
    ),
    "tail_unauthenticated": attention(
        "The file ends in a fragment that no signature covers.",
        "An interrupted append leaves one. It may also be the work of somebody else; it is never read as a fact.",
        "Preserve the file as it is.",
    ),
    "effects_unknown": attention(
        "Effects were started whose outcome nobody signed.",
        "They may have happened, in full or in part, or not at all.",
        "Ask the systems concerned, one effect at a time; then record what was found with `invocation reconcile`.",
    ),
    "approvals_untracked": attention(
        "Tool calls were approved without a record that they were started.",
        "The absence of a start does not show that the tool did not run.",
        "Ask the tools concerned what they did.",
    ),
    "not_canonical": remark(
        "A signed record is not written as the runtime's writer writes it.",
        "The payload is authentic, but its spelling is not the writer's: white space, order, or an alternative form.",
        _ASK,
    ),
    "layout_not_writers": remark(
        "A line is not laid out as the runtime's writer does.",
        "Text around the signed part was changed; in the last line nothing commits to it.",
        "Compare with another copy of the journal.",
    ),
    "time_backwards": remark(
        "A record is dated before the one in front of it.",
        "The clock was stepped back, which alone says nothing about the records.",
        "Treat times as claims of the signer.",
    ),
    "time_in_future": remark(
        "A record is dated later than now.",
        "One of the two clocks is wrong, which alone says nothing about the records.",
        "Treat times as claims of the signer.",
    ),
    "start_after_unconfirmed": remark(
        "An effect was started after an outcome that stayed unconfirmed.",
        "The runtime's writer refuses this. " + _KEY_HOLDER,
        _ASK,
    ),
    "dispatch_hides_unknown": remark(
        "A tool call finished without error while an effect inside it is unknown.",
        "The runtime turns such results into errors. " + _KEY_HOLDER,
        _ASK,
    ),
    "effect_outside_dispatch": remark(
        "A nested effect lies outside any open tool call with its run key and fingerprint.",
        "The runtime records nested effects only while their call runs. " + _KEY_HOLDER,
        _ASK,
    ),
    "dispatch_without_approval": remark(
        "A tool call was started without an earlier approval in the same iteration.",
        "The runtime writes the policy record first. " + _KEY_HOLDER,
        _ASK,
    ),
    "budget_opened_and_linked": remark(
        "One journal both opens a shared budget and links to another.",
        "A root run opens, a child run only links. " + _KEY_HOLDER,
        _ASK,
    ),
    "completed_after_unconfirmed": remark(
        "The run ended as completed after an unconfirmed outcome.",
        "The runtime ends such a run with `UnconfirmedEffects`. " + _KEY_HOLDER,
        _ASK,
    ),
    "delegation_audit_differs": remark(
        "A delegation finished with another audit reference than it started with.",
        "The runtime uses one reference for both. " + _KEY_HOLDER,
        _ASK,
    ),
    "file_name_differs": remark(
        "The file name does not fit the agent and run in the records.",
        "The file was renamed or copied; the records decide, not the name.",
        "Look for the journal that should have this name.",
    ),
    "tail_not_a_prefix": remark(
        "The unauthenticated tail is not the beginning of a line that the runtime writes.",
        "A crash of the file system can leave other bytes; so can somebody else.",
        "Preserve the file, and look at the bytes with `audit show --tail`.",
    ),
}
