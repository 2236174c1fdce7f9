"""Codes of the schedule database (cron-store.md)."""

from symbi_recover.core.findings import Code, attention, refused, remark

CODES: dict[str, Code] = {
    "cron_store_scope": refused(
        "A schedule database was given for an invocation that no schedule opened.",
        "Only the scope `scheduler:v1` has occurrences.",
        "Leave the option out.",
    ),
    "cron_store_missing": refused(
        "The schedule database is not there.",
        "The project has no schedule, or the database lies elsewhere.",
        "Name it with `--cron-store`.",
    ),
    "cron_store_not_private": refused(
        "The schedule database, a file beside it, or its folder is not private.",
        "The runtime refuses such a database. Others may have changed it.",
        "Look at owner, mode and links, which are shown.",
    ),
    "cron_store_too_large": refused(
        "The schedule database is larger than this tool reads.",
        "It is read through a private copy in memory.",
        "Examine it with the runtime, or with SQLite on a copy.",
    ),
    "cron_store_unreadable": refused(
        "The schedule database is not one that can be read.",
        "It is not an SQLite database, is damaged, or lacks the tables of a schedule.",
        "Examine a copy with the tools of SQLite.",
    ),
    "cron_store_changing": refused(
        "The schedule database kept changing while it was copied.",
        "A scheduler is at work. No answer is given about a mixture of two states.",
        "Try again, or stop the scheduler first.",
    ),
    "cron_rollback_pending": attention(
        "A writer was stopped inside a transaction, which the next writer will roll back.",
        "A rollback journal lies beside the database. What is shown is the state before that transaction.",
        "Let the runtime open the database; do not remove the journal by hand.",
    ),
    "cron_log_pending": remark(
        "A write-ahead log lies beside the database and was taken into account.",
        "The last writer did not close the database in an orderly way, or is still at work.",
        "Nothing needs to be done; keep both files together when copying.",
    ),
    "cron_store_foreign": attention(
        "The schedule database belongs to another project.",
        "It is bound to the real path of a project; a moved project no longer fits.",
        "Name the right database, or examine the project at its old path.",
    ),
    "cron_store_unowned": remark(
        "The schedule database is bound to no project yet.",
        "The first command of the runtime that opens it will bind it to its own project.",
        "Make sure that it is the right one before any command of the runtime names it.",
    ),
    "cron_occurrence_missing": remark(
        "The schedule database has no occurrence of this invocation.",
        "It may be another database, or the occurrence was triggered elsewhere. A reconciliation then leaves the schedule as it is.",
        "Check which database the scheduler uses.",
    ),
    "cron_occurrence_invalid": attention(
        "A frozen occurrence does not fit its fingerprint, or has an unknown state.",
        "The row was changed by something other than the runtime.",
        "Compare it with a copy of the database.",
    ),
    "cron_occurrence_differs": attention(
        "The occurrence and the claim of one invocation name different requests or agents.",
        "The runtime would sign a reconciliation and then fail to update the schedule.",
        "Find out which of the two was changed.",
    ),
    "cron_job_missing": attention(
        "The job of an occurrence was removed.",
        "Its history is gone with it, so the runtime can no longer update the schedule when the invocation is reconciled.",
        "Record the decision all the same; the receipt stays valid.",
    ),
    "cron_job_blocked": attention(
        "A job does not run, because an occurrence or a history row of it is unresolved.",
        "The scheduler starts nothing new before somebody decided what happened.",
        "Inspect the invocation that is named, and reconcile it.",
    ),
    "cron_legacy_run": attention(
        "A history row of an older release has no occurrence, so nothing can reconcile it.",
        "It has no claim. The runtime marks it unresolved whenever it opens the database.",
        "Inspect the original effects by hand before the job is resumed.",
    ),
}
