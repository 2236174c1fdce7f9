"""Codes about lease stores (leases.md sections 9, 11 and 14), and those that block the helper."""

from symbi_recover.core.findings import Code, attention, info, refused, remark

_COPY = "Keep a copy of the whole directory before anything else touches it; deleting is no repair."
_OWNER = "Give the entry back to the account that runs the helper, mode 0600, one link, after keeping a copy."

CODES: dict[str, Code] = {
    "dir_unsafe": refused(
        "The state directory is not one that the helper accepts.",
        "It is a link or no directory, belongs to another account, or its mode lets others in. The helper refuses to start, and a running one exits within a second when the mode becomes open.",
        "Compare owner and mode with what the account of the helper needs (0700), and find out who changed them.",
    ),
    "dir_missing": refused(
        "There is no state directory at this path.",
        "The helper would create an empty one, so a wrong path looks like a store without leases. Nothing is known about the leases that were meant.",
        "Find the path that the runtime uses: its profile, SYMBIONT_SANDBOX_STATE_DIR, or ~/.symbiont/sandbox-leases of its account.",
    ),
    "path_too_long": refused(
        "The path is too long for the helper's socket.",
        "A Unix socket path must be shorter than 104 bytes here, so the helper refuses the directory.",
        "Use a shorter path for the state directory.",
    ),
    "lock_unsafe": refused(
        "supervisor.lock is not a private file.",
        "Others could hold or replace it, so the helper refuses to start.",
        _OWNER,
    ),
    "socket_unexpected": refused(
        "Something other than the helper's own socket lies at supervisor.sock.",
        "The helper replaces a stale socket of its own account and refuses anything else.",
        "Find out who put it there, and move it away after keeping a copy.",
    ),
    "admission_invalid": refused(
        "admission.conf cannot be used.",
        "It is not private, too large, not JSON, or its limits are missing, zero or too high. The helper refuses to start, and the limits are unknown.",
        "Write all three limits as the format asks; without the file the helper uses its defaults.",
    ),
    "entry_not_uuid": refused(
        "A file ends in .json and is not named after a lease.",
        "The helper takes every *.json for a record. One stray file stops it altogether, and a running helper exits within a second.",
        _COPY,
    ),
    "entry_noncanonical_name": refused(
        "A record's name is a UUID in an unusual spelling.",
        "Only lower case with dashes is accepted in file names; the helper never writes another form.",
        _COPY,
    ),
    "entry_not_private": refused(
        "A record belongs to another account, is open to others, or has more than one link.",
        "Somebody else could have written it, so the helper refuses the whole store.",
        _OWNER,
    ),
    "entry_is_link": refused(
        "A record is a symbolic link.",
        "The helper writes real files and follows no link, even one that leads nowhere.",
        _COPY,
    ),
    "entry_not_regular": refused(
        "A record is no regular file.",
        "A folder, socket or device cannot hold a record; the helper refuses the whole store.",
        _COPY,
    ),
    "entry_hangs_helper": refused(
        "A FIFO lies under a record's name.",
        "The helper waits for a writer for ever: it holds the lock and never binds its socket, so it looks alive and does nothing.",
        "Move the FIFO away, then end the helper that waits on it.",
    ),
    "entry_unreadable": refused(
        "A file that the helper must read cannot be read from here.",
        "Missing rights or a device error. Whether the helper could start on it is not known.",
        "Run as the account of the helper or as root, or read a copy made by one.",
    ),
    "temp_unsafe": refused(
        "A temporary of the helper is not a private file.",
        "The helper deletes its left-overs at start, and refuses to touch what others could have made.",
        _COPY,
    ),
    "record_too_large": refused(
        "A record is larger than 131072 bytes.",
        "The helper never writes one that large and refuses to read it.",
        _COPY,
    ),
    "record_not_json": refused(
        "A record is not JSON.",
        "It was cut, overwritten or edited; the helper replaces records in one step, so it never leaves a half one.",
        _COPY,
    ),
    "record_schema": refused(
        "A record has members that are missing, unknown, repeated or of the wrong type.",
        "It was written by another version or edited. Its charge and its worker are unknown.",
        _COPY,
    ),
    "record_rule": refused(
        "A record breaks a rule of its format.",
        "Its members have the right types, but values that the helper never writes and refuses to read.",
        _COPY,
    ),
    "record_identity": refused(
        "A record does not belong to the lease that its file is named after.",
        "It was copied or renamed; which worker it stands for cannot be told.",
        _COPY,
    ),
    "too_many_records": refused(
        "There are more than 512 records.",
        "The helper stops at the 513th; it never writes that many itself.",
        "Find out where the surplus comes from; every record charges a worker until it is resolved.",
    ),
    "record_unstable": refused(
        "A record was replaced three times while it was being read.",
        "A helper is at work. A replaced record is never taken for an absent one, so nothing is said about it.",
        "Ask again, or stop the helper first.",
    ),
    "temp_leftover": attention(
        "A record that was being written was left behind.",
        "A helper died in mid-write. The left-over may hold a later state than the visible record, for example a container's id, and the next helper deletes it at start.",
        "Copy it elsewhere before any helper runs on this directory.",
    ),
    "environment_leftover": attention(
        "A worker's environment file was left behind.",
        "A helper died while its client was starting. The file holds the worker's secrets; the next helper deletes it at start.",
        "Treat the secrets of that worker as exposed to whoever can read this directory.",
    ),
    "tombstone": attention(
        "A container record that no helper owns, without a known container.",
        "The creation was refused, failed, or is still on its way: absence now does not prove absence later. It is charged in full until it is resolved.",
        "Raise the admission limits if capacity is the only complaint; otherwise look with `lease check`, then `lease witness` and `lease retire`.",
    ),
    "lifetime_unenforced": attention(
        "A worker was left without a helper that would end it.",
        "Deadlines live in the helper's memory alone. While no helper runs, the worker may run on without limit.",
        "Start the helper on this directory: it removes what it finds; or use `lease reconcile` for containers.",
    ),
    "lease_missing": refused(
        "The store has no record of the lease that was asked for.",
        "It was resolved and its record removed, never written, or lies in another store. That proves nothing about its worker.",
        "List the leases with `lease list`, and check that this is the store that was meant.",
    ),
    "recovery_pending": attention(
        "A record waits for a helper that would clear it.",
        "Only a running helper resolves it. Until then it is charged in full.",
        "Start the helper on this directory.",
    ),
    "supervision_unknown": attention(
        "Whether a helper runs cannot be told from here.",
        "The kernel's list of locks is not visible, not whole, or the file system keeps its locks elsewhere.",
        "Ask on the host itself, as root, outside containers.",
    ),
    "legacy_resources": attention(
        "A record does not say what its worker is charged.",
        "An old helper wrote it. While it is there, all new work is refused.",
        "Resolve this lease first.",
    ),
    "admission_overflow": attention(
        "The charges do not add up within 64 bits.",
        "A sum that overflows is an error for the helper, not a number; it cannot admit anything.",
        "Look at the records with the largest charges.",
    ),
    "staging_dangling_ref": attention(
        "A record names a snapshot that is not there.",
        "The copy was deleted, or never made. The helper reports its staging view as broken.",
        "Resolve the lease; its inputs are gone.",
    ),
    "staging_uncharged_data": attention(
        "A snapshot has data and no readable reservation.",
        "The reservation is written first, so this is damage: the space is used and charged to nobody.",
        "Keep a copy of the data, and have the directory looked at before staging is used again.",
    ),
    "staging_bad_entry": attention(
        "The snapshot pool holds something that does not belong there.",
        "One stray name or unsafe mode stops all staging allocation; it never stops the helper.",
        _COPY,
    ),
    "staging_orphan": info(
        "A snapshot is named by no record and held by no process.",
        "The next sweep of a helper or the next allocation deletes it.",
        "Copy it now if it is evidence.",
    ),
    "staging_unavailable": info(
        "The state directory's mode rules out snapshots.",
        "Staging needs a mode without any bit for others, even for root; a managed host's 0711 has no staging view.",
        "Nothing, on a managed host.",
    ),
    "litter_vm_dir": info(
        "A VM's folder has no record.",
        "The helper never sweeps such folders.",
        "Remove it by hand once no process uses it.",
    ),
    "litter_jail": info(
        "A VM's jail has no record.",
        "The helper never sweeps such folders.",
        "Remove it by hand once no process uses it.",
    ),
    "stale_socket": info(
        "The helper's socket is there and no helper holds the lock.",
        "The helper was killed; the next one replaces the socket.",
        "Nothing.",
    ),
    "entry_unknown": remark(
        "Something lies in the directory that the helper ignores.",
        "Editors, shares and people leave files behind; the helper reads only the names it knows.",
        "Nothing for the helper's sake; find out where it came from.",
    ),
    "noncanonical_spelling": remark(
        "An id is spelled in a way that the helper never writes.",
        "The helper accepts the spelling, so the record was made or edited by something else.",
        "Find out who wrote the record.",
    ),
    "state_extra_members": remark(
        "A state has members that its phase does not have.",
        "The helper ignores them in this phase and never writes them.",
        "Find out who wrote the record.",
    ),
    "positional_form": remark(
        "An array stands for an object.",
        "The helper accepts the form and never writes it.",
        "Find out who wrote the record.",
    ),
    "duplicate_env_key": remark(
        "A name is repeated in docker_environment.",
        "The helper takes the last one and never writes two.",
        "Find out who wrote the record.",
    ),
    "nil_lease": remark(
        "The lease is the all-zero UUID.",
        "The helper accepts it; no runtime chooses it.",
        "Find out who wrote the record.",
    ),
    "jail_uid_shared": remark(
        "Two VM records share one account.",
        "The account separates jails from each other; sharing it, they are not separate.",
        "Have the managed host's allocation looked at.",
    ),
    "owner_assumed": info(
        "The store was judged for the account that owns it.",
        "A helper of another account would refuse it; root looked on behalf of the owner.",
        "Name the account with --helper-uid if the helper runs as another.",
    ),
}

BLOCKING = frozenset(
    [
        "dir_unsafe",
        "dir_missing",
        "path_too_long",
        "lock_unsafe",
        "socket_unexpected",
        "admission_invalid",
        "entry_not_uuid",
        "entry_noncanonical_name",
        "entry_not_private",
        "entry_is_link",
        "entry_not_regular",
        "entry_hangs_helper",
        "temp_unsafe",
        "record_too_large",
        "record_not_json",
        "record_schema",
        "record_rule",
        "record_identity",
        "too_many_records",
    ]
)
"""Any of these stops the whole helper (section 14)."""

UNEXAMINED = frozenset({"entry_unreadable", "record_unstable"})
"""With one of these and no blocking one, whether the helper would start is not known."""
