"""Codes about a lease's worker: what the kernel says of it, and the run that it names (leases.md sections 15 and 16)."""

from symbi_recover.core.findings import Code, attention, info, refused

CODES: dict[str, Code] = {
    "vm_other_boot": info(
        "The VM's process belongs to another boot.",
        "It cannot exist any more.",
        "Start the helper: it clears the record.",
    ),
    "vm_gone": info(
        "The VM's process is gone.",
        "No process has its number.",
        "Start the helper: it clears the record.",
    ),
    "vm_pid_reused": info(
        "Another process has the VM's number.",
        "Its start time differs, so it is a stranger.",
        "Leave that process alone; the helper does so too and clears the record.",
    ),
    "vm_exited": info(
        "The VM's process has ended and was not yet collected.",
        "Its number and start time fit, and its state says it has ended.",
        "Start the helper: it clears the record.",
    ),
    "vm_alive": info(
        "The VM's process runs.",
        "Number, start time and boot are those of the record.",
        "With no helper running, start it: it ends the VM.",
    ),
    "vm_stray": attention(
        "The VM's cgroup has processes, although the recorded one is gone.",
        "The cgroup decides, not the number: parts of the VM run on.",
        "Start the helper: it kills what is in the cgroup.",
    ),
    "vm_uncorroborated": attention(
        "The process has the recorded identity, but not the program or folder of the VM.",
        "The record's number and start time fit a process that does not look like this VM.",
        "Look at the process by hand before starting the helper, which would end it.",
    ),
    "vm_unknown_namespace": attention(
        "The VM's number counts in another PID namespace.",
        "The same number means another process there, so nothing can be said from here.",
        "Ask in the PID namespace of the helper.",
    ),
    "worker_unknown": attention(
        "The kernel did not answer about a worker.",
        "Missing rights, or the answer changed while it was read.",
        "Ask again, as root.",
    ),
    "cgroup_other_boot": info(
        "The worker's cgroup belongs to another boot.",
        "Nothing of it can live any more.",
        "Start the helper: it clears the record.",
    ),
    "cgroup_gone": info(
        "The worker's cgroup is gone.",
        "Nothing can live in it.",
        "Start the helper: it clears the record.",
    ),
    "cgroup_replaced": info(
        "Another cgroup has the recorded path.",
        "Device or inode differ, so the recorded one is gone.",
        "Leave it alone; the helper clears the record.",
    ),
    "cgroup_populated": info(
        "The worker's cgroup has processes.",
        "Identity and boot are those of the record.",
        "With no helper running, start it: it ends them.",
    ),
    "cgroup_empty": info(
        "The worker's cgroup is there and empty.",
        "The worker has ended or was never started.",
        "Start the helper: it clears the record.",
    ),
    "origin_absent": info(
        "A lease names no run.",
        "It was launched outside a protected dispatch, or by an old helper. That is legitimate.",
        "Nothing.",
    ),
    "origin_unverified": info(
        "The run that a lease names could not be checked.",
        "No journal was found under the folders given, or no key was given. The origin is the runtime's own statement, kept but not signed by the helper.",
        "Name the project with --project and a key that you trust.",
    ),
    "origin_journal_refused": refused(
        "The journal of the run that a lease names does not verify.",
        "Its signatures or its chain do not hold under the trusted key, so it proves nothing about the lease.",
        "Run `audit verify` on the journal.",
    ),
    "origin_key_mismatch": refused(
        "A lease names another key than the trusted one.",
        "The key in a lease is a claim; the key you gave decides.",
        "Find out which key the run was signed with, from a source other than the lease.",
    ),
    "origin_dispatch_missing": refused(
        "The run's journal does not hold the dispatch that the lease names.",
        "The dispatch is signed and synced before the lease exists, so this is inconsistent, not early.",
        "Treat lease and journal as a contradiction; look for a longer copy of the journal.",
    ),
    "origin_dispatch_repeated": refused(
        "The run's journal holds the dispatch more than once.",
        "A dispatch has one start; the runtime refuses a second.",
        "Run `audit inspect` on the journal.",
    ),
    "origin_field_mismatch": refused(
        "What a lease says of its dispatch is not what was signed.",
        "Tool, fingerprint, iteration or agent differ from the signed record.",
        "Trust the signed record; find out who wrote the lease.",
    ),
    "origin_verified": info(
        "The signed journal holds the dispatch that the lease names.",
        "Signatures hold under the trusted key, and every field fits. It grants nothing and settles nothing.",
        "Nothing.",
    ),
}
