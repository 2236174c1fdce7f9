"""Codes about lease stores (leases.md sections 9, 11, 14, 15 and 16), and those that block the helper."""

from symbi_recover.core.findings import Code, Severity

_REFUSED, _ATTENTION, _REMARK, _INFO = Severity.REFUSED, Severity.ATTENTION, Severity.REMARK, Severity.INFO
_COPY = "Keep a copy of the whole directory before anything else touches it; deleting is no repair."
_OWNER = "Give the entry back to the account that runs the helper, mode 0600, one link, after keeping a copy."

CODES: dict[str, Code] = {
    "dir_unsafe": Code(
        severity=_REFUSED,
        meaning="The state directory is not one that the helper accepts.",
        why="It is a link or no directory, belongs to another account, or its mode lets others in. The helper refuses to start, and a running one exits within a second when the mode becomes open.",
        next="Compare owner and mode with what the account of the helper needs (0700), and find out who changed them.",
    ),
    "dir_missing": Code(
        severity=_REFUSED,
        meaning="There is no state directory at this path.",
        why="The helper would create an empty one, so a wrong path looks like a store without leases. Nothing is known about the leases that were meant.",
        next="Find the path that the runtime uses: its profile, SYMBIONT_SANDBOX_STATE_DIR, or ~/.symbiont/sandbox-leases of its account.",
    ),
    "path_too_long": Code(
        severity=_REFUSED,
        meaning="The path is too long for the helper's socket.",
        why="A Unix socket path must be shorter than 104 bytes here, so the helper refuses the directory.",
        next="Use a shorter path for the state directory.",
    ),
    "lock_unsafe": Code(
        severity=_REFUSED,
        meaning="supervisor.lock is not a private file.",
        why="Others could hold or replace it, so the helper refuses to start.",
        next=_OWNER,
    ),
    "socket_unexpected": Code(
        severity=_REFUSED,
        meaning="Something other than the helper's own socket lies at supervisor.sock.",
        why="The helper replaces a stale socket of its own account and refuses anything else.",
        next="Find out who put it there, and move it away after keeping a copy.",
    ),
    "admission_invalid": Code(
        severity=_REFUSED,
        meaning="admission.conf cannot be used.",
        why="It is not private, too large, not JSON, or its limits are missing, zero or too high. The helper refuses to start, and the limits are unknown.",
        next="Write all three limits as the format asks; without the file the helper uses its defaults.",
    ),
    "entry_not_uuid": Code(
        severity=_REFUSED,
        meaning="A file ends in .json and is not named after a lease.",
        why="The helper takes every *.json for a record. One stray file stops it altogether, and a running helper exits within a second.",
        next=_COPY,
    ),
    "entry_noncanonical_name": Code(
        severity=_REFUSED,
        meaning="A record's name is a UUID in an unusual spelling.",
        why="Only lower case with dashes is accepted in file names; the helper never writes another form.",
        next=_COPY,
    ),
    "entry_not_private": Code(
        severity=_REFUSED,
        meaning="A record belongs to another account, is open to others, or has more than one link.",
        why="Somebody else could have written it, so the helper refuses the whole store.",
        next=_OWNER,
    ),
    "entry_is_link": Code(
        severity=_REFUSED,
        meaning="A record is a symbolic link.",
        why="The helper writes real files and follows no link, even one that leads nowhere.",
        next=_COPY,
    ),
    "entry_not_regular": Code(
        severity=_REFUSED,
        meaning="A record is no regular file.",
        why="A folder, socket or device cannot hold a record; the helper refuses the whole store.",
        next=_COPY,
    ),
    "entry_hangs_helper": Code(
        severity=_REFUSED,
        meaning="A FIFO lies under a record's name.",
        why="The helper waits for a writer for ever: it holds the lock and never binds its socket, so it looks alive and does nothing.",
        next="Move the FIFO away, then end the helper that waits on it.",
    ),
    "entry_unreadable": Code(
        severity=_REFUSED,
        meaning="A file that the helper must read cannot be read from here.",
        why="Missing rights or a device error. Whether the helper could start on it is not known.",
        next="Run as the account of the helper or as root, or read a copy made by one.",
    ),
    "temp_unsafe": Code(
        severity=_REFUSED,
        meaning="A temporary of the helper is not a private file.",
        why="The helper deletes its left-overs at start, and refuses to touch what others could have made.",
        next=_COPY,
    ),
    "record_too_large": Code(
        severity=_REFUSED,
        meaning="A record is larger than 131072 bytes.",
        why="The helper never writes one that large and refuses to read it.",
        next=_COPY,
    ),
    "record_not_json": Code(
        severity=_REFUSED,
        meaning="A record is not JSON.",
        why="It was cut, overwritten or edited; the helper replaces records in one step, so it never leaves a half one.",
        next=_COPY,
    ),
    "record_schema": Code(
        severity=_REFUSED,
        meaning="A record has members that are missing, unknown, repeated or of the wrong type.",
        why="It was written by another version or edited. Its charge and its worker are unknown.",
        next=_COPY,
    ),
    "record_rule": Code(
        severity=_REFUSED,
        meaning="A record breaks a rule of its format.",
        why="Its members have the right types, but values that the helper never writes and refuses to read.",
        next=_COPY,
    ),
    "record_identity": Code(
        severity=_REFUSED,
        meaning="A record does not belong to the lease that its file is named after.",
        why="It was copied or renamed; which worker it stands for cannot be told.",
        next=_COPY,
    ),
    "too_many_records": Code(
        severity=_REFUSED,
        meaning="There are more than 512 records.",
        why="The helper stops at the 513th; it never writes that many itself.",
        next="Find out where the surplus comes from; every record charges a worker until it is resolved.",
    ),
    "record_unstable": Code(
        severity=_REFUSED,
        meaning="A record was replaced three times while it was being read.",
        why="A helper is at work. A replaced record is never taken for an absent one, so nothing is said about it.",
        next="Ask again, or stop the helper first.",
    ),
    "temp_leftover": Code(
        severity=_ATTENTION,
        meaning="A record that was being written was left behind.",
        why="A helper died in mid-write. The left-over may hold a later state than the visible record, for example a container's id, and the next helper deletes it at start.",
        next="Copy it elsewhere before any helper runs on this directory.",
    ),
    "environment_leftover": Code(
        severity=_ATTENTION,
        meaning="A worker's environment file was left behind.",
        why="A helper died while its client was starting. The file holds the worker's secrets; the next helper deletes it at start.",
        next="Treat the secrets of that worker as exposed to whoever can read this directory.",
    ),
    "tombstone": Code(
        severity=_ATTENTION,
        meaning="A container record that no helper owns, without a known container.",
        why="The creation was refused, failed, or is still on its way: absence now does not prove absence later. It is charged in full until it is resolved.",
        next="Raise the admission limits if capacity is the only complaint; otherwise look with `lease check`, then `lease witness` and `lease retire`.",
    ),
    "lifetime_unenforced": Code(
        severity=_ATTENTION,
        meaning="A worker was left without a helper that would end it.",
        why="Deadlines live in the helper's memory alone. While no helper runs, the worker may run on without limit.",
        next="Start the helper on this directory: it removes what it finds; or use `lease reconcile` for containers.",
    ),
    "recovery_pending": Code(
        severity=_ATTENTION,
        meaning="A record waits for a helper that would clear it.",
        why="Only a running helper resolves it. Until then it is charged in full.",
        next="Start the helper on this directory.",
    ),
    "supervision_unknown": Code(
        severity=_ATTENTION,
        meaning="Whether a helper runs cannot be told from here.",
        why="The kernel's list of locks is not visible, not whole, or the file system keeps its locks elsewhere.",
        next="Ask on the host itself, as root, outside containers.",
    ),
    "legacy_resources": Code(
        severity=_ATTENTION,
        meaning="A record does not say what its worker is charged.",
        why="An old helper wrote it. While it is there, all new work is refused.",
        next="Resolve this lease first.",
    ),
    "admission_overflow": Code(
        severity=_ATTENTION,
        meaning="The charges do not add up within 64 bits.",
        why="A sum that overflows is an error for the helper, not a number; it cannot admit anything.",
        next="Look at the records with the largest charges.",
    ),
    "staging_dangling_ref": Code(
        severity=_ATTENTION,
        meaning="A record names a snapshot that is not there.",
        why="The copy was deleted, or never made. The helper reports its staging view as broken.",
        next="Resolve the lease; its inputs are gone.",
    ),
    "staging_uncharged_data": Code(
        severity=_ATTENTION,
        meaning="A snapshot has data and no readable reservation.",
        why="The reservation is written first, so this is damage: the space is used and charged to nobody.",
        next="Keep a copy of the data, and have the directory looked at before staging is used again.",
    ),
    "staging_bad_entry": Code(
        severity=_ATTENTION,
        meaning="The snapshot pool holds something that does not belong there.",
        why="One stray name or unsafe mode stops all staging allocation; it never stops the helper.",
        next=_COPY,
    ),
    "staging_orphan": Code(
        severity=_INFO,
        meaning="A snapshot is named by no record and held by no process.",
        why="The next sweep of a helper or the next allocation deletes it.",
        next="Copy it now if it is evidence.",
    ),
    "staging_unavailable": Code(
        severity=_INFO,
        meaning="The state directory's mode rules out snapshots.",
        why="Staging needs a mode without any bit for others, even for root; a managed host's 0711 has no staging view.",
        next="Nothing, on a managed host.",
    ),
    "litter_vm_dir": Code(
        severity=_INFO,
        meaning="A VM's folder has no record.",
        why="The helper never sweeps such folders.",
        next="Remove it by hand once no process uses it.",
    ),
    "litter_jail": Code(
        severity=_INFO,
        meaning="A VM's jail has no record.",
        why="The helper never sweeps such folders.",
        next="Remove it by hand once no process uses it.",
    ),
    "stale_socket": Code(
        severity=_INFO,
        meaning="The helper's socket is there and no helper holds the lock.",
        why="The helper was killed; the next one replaces the socket.",
        next="Nothing.",
    ),
    "entry_unknown": Code(
        severity=_REMARK,
        meaning="Something lies in the directory that the helper ignores.",
        why="Editors, shares and people leave files behind; the helper reads only the names it knows.",
        next="Nothing for the helper's sake; find out where it came from.",
    ),
    "noncanonical_spelling": Code(
        severity=_REMARK,
        meaning="An id is spelled in a way that the helper never writes.",
        why="The helper accepts the spelling, so the record was made or edited by something else.",
        next="Find out who wrote the record.",
    ),
    "state_extra_members": Code(
        severity=_REMARK,
        meaning="A state has members that its phase does not have.",
        why="The helper ignores them in this phase and never writes them.",
        next="Find out who wrote the record.",
    ),
    "positional_form": Code(
        severity=_REMARK,
        meaning="An array stands for an object.",
        why="The helper accepts the form and never writes it.",
        next="Find out who wrote the record.",
    ),
    "duplicate_env_key": Code(
        severity=_REMARK,
        meaning="A name is repeated in docker_environment.",
        why="The helper takes the last one and never writes two.",
        next="Find out who wrote the record.",
    ),
    "nil_lease": Code(
        severity=_REMARK,
        meaning="The lease is the all-zero UUID.",
        why="The helper accepts it; no runtime chooses it.",
        next="Find out who wrote the record.",
    ),
    "jail_uid_shared": Code(
        severity=_REMARK,
        meaning="Two VM records share one account.",
        why="The account separates jails from each other; sharing it, they are not separate.",
        next="Have the managed host's allocation looked at.",
    ),
    "owner_assumed": Code(
        severity=_INFO,
        meaning="The store was judged for the account that owns it.",
        why="A helper of another account would refuse it; root looked on behalf of the owner.",
        next="Name the account with --helper-uid if the helper runs as another.",
    ),
    "vm_other_boot": Code(
        severity=_INFO,
        meaning="The VM's process belongs to another boot.",
        why="It cannot exist any more.",
        next="Start the helper: it clears the record.",
    ),
    "vm_gone": Code(
        severity=_INFO,
        meaning="The VM's process is gone.",
        why="No process has its number.",
        next="Start the helper: it clears the record.",
    ),
    "vm_pid_reused": Code(
        severity=_INFO,
        meaning="Another process has the VM's number.",
        why="Its start time differs, so it is a stranger.",
        next="Leave that process alone; the helper does so too and clears the record.",
    ),
    "vm_exited": Code(
        severity=_INFO,
        meaning="The VM's process has ended and was not yet collected.",
        why="Its number and start time fit, and its state says it has ended.",
        next="Start the helper: it clears the record.",
    ),
    "vm_alive": Code(
        severity=_INFO,
        meaning="The VM's process runs.",
        why="Number, start time and boot are those of the record.",
        next="With no helper running, start it: it ends the VM.",
    ),
    "vm_stray": Code(
        severity=_ATTENTION,
        meaning="The VM's cgroup has processes, although the recorded one is gone.",
        why="The cgroup decides, not the number: parts of the VM run on.",
        next="Start the helper: it kills what is in the cgroup.",
    ),
    "vm_uncorroborated": Code(
        severity=_ATTENTION,
        meaning="The process has the recorded identity, but not the program or folder of the VM.",
        why="The record's number and start time fit a process that does not look like this VM.",
        next="Look at the process by hand before starting the helper, which would end it.",
    ),
    "vm_unknown_namespace": Code(
        severity=_ATTENTION,
        meaning="The VM's number counts in another PID namespace.",
        why="The same number means another process there, so nothing can be said from here.",
        next="Ask in the PID namespace of the helper.",
    ),
    "worker_unknown": Code(
        severity=_ATTENTION,
        meaning="The kernel did not answer about a worker.",
        why="Missing rights, or the answer changed while it was read.",
        next="Ask again, as root.",
    ),
    "cgroup_other_boot": Code(
        severity=_INFO,
        meaning="The worker's cgroup belongs to another boot.",
        why="Nothing of it can live any more.",
        next="Start the helper: it clears the record.",
    ),
    "cgroup_gone": Code(
        severity=_INFO,
        meaning="The worker's cgroup is gone.",
        why="Nothing can live in it.",
        next="Start the helper: it clears the record.",
    ),
    "cgroup_replaced": Code(
        severity=_INFO,
        meaning="Another cgroup has the recorded path.",
        why="Device or inode differ, so the recorded one is gone.",
        next="Leave it alone; the helper clears the record.",
    ),
    "cgroup_populated": Code(
        severity=_INFO,
        meaning="The worker's cgroup has processes.",
        why="Identity and boot are those of the record.",
        next="With no helper running, start it: it ends them.",
    ),
    "cgroup_empty": Code(
        severity=_INFO,
        meaning="The worker's cgroup is there and empty.",
        why="The worker has ended or was never started.",
        next="Start the helper: it clears the record.",
    ),
    "origin_absent": Code(
        severity=_INFO,
        meaning="A lease names no run.",
        why="It was launched outside a protected dispatch, or by an old helper. That is legitimate.",
        next="Nothing.",
    ),
    "origin_unverified": Code(
        severity=_INFO,
        meaning="The run that a lease names could not be checked.",
        why="No journal was found under the folders given, or no key was given. The origin is the runtime's own statement, kept but not signed by the helper.",
        next="Name the project with --project and a key that you trust.",
    ),
    "origin_journal_refused": Code(
        severity=_REFUSED,
        meaning="The journal of the run that a lease names does not verify.",
        why="Its signatures or its chain do not hold under the trusted key, so it proves nothing about the lease.",
        next="Run `audit diagnose` on the journal.",
    ),
    "origin_key_mismatch": Code(
        severity=_REFUSED,
        meaning="A lease names another key than the trusted one.",
        why="The key in a lease is a claim; the key you gave decides.",
        next="Find out which key the run was signed with, from a source other than the lease.",
    ),
    "origin_dispatch_missing": Code(
        severity=_REFUSED,
        meaning="The run's journal does not hold the dispatch that the lease names.",
        why="The dispatch is signed and synced before the lease exists, so this is inconsistent, not early.",
        next="Treat lease and journal as a contradiction; look for a longer copy of the journal.",
    ),
    "origin_dispatch_repeated": Code(
        severity=_REFUSED,
        meaning="The run's journal holds the dispatch more than once.",
        why="A dispatch has one start; the runtime refuses a second.",
        next="Run `audit inspect` on the journal.",
    ),
    "origin_field_mismatch": Code(
        severity=_REFUSED,
        meaning="What a lease says of its dispatch is not what was signed.",
        why="Tool, fingerprint, iteration or agent differ from the signed record.",
        next="Trust the signed record; find out who wrote the lease.",
    ),
    "origin_verified": Code(
        severity=_INFO,
        meaning="The signed journal holds the dispatch that the lease names.",
        why="Signatures hold under the trusted key, and every field fits. It grants nothing and settles nothing.",
        next="Nothing.",
    ),
}

BLOCKING = frozenset(
    ["dir_unsafe", "dir_missing", "path_too_long", "lock_unsafe", "socket_unexpected", "admission_invalid", "entry_not_uuid", "entry_noncanonical_name", "entry_not_private", "entry_is_link", "entry_not_regular", "entry_hangs_helper", "temp_unsafe", "record_too_large", "record_not_json", "record_schema", "record_rule", "record_identity", "too_many_records"]
)
"""Any of these stops the whole helper (section 14)."""

UNEXAMINED = frozenset({"entry_unreadable", "record_unstable"})
"""With one of these and no blocking one, whether the helper would start is not known."""
