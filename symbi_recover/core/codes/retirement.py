"""Codes about reconciling, witnessing and retiring leases (leases.md sections 13 and 18)."""

from symbi_recover.core.findings import Code, attention, info, refused

CODES: dict[str, Code] = {
    "supervisor_running": attention(
        "A helper holds the store's lock.",
        "Records may be touched only while nobody else does. A running helper removes containers and records itself, and keeps tombstones.",
        "Stop it first: its service unit, `systemctl --user stop symbi-workers-<SHA-256 of the directory path>.service` for one that the runtime started, or its runtime. It has no stop command of its own.",
    ),
    "lock_missing": attention(
        "There is no supervisor.lock to hold.",
        "No helper has ever started on this store, or the file was removed. This tool creates nothing there.",
        "Find out who removed it; start the helper once, so that it makes the file, and stop it.",
    ),
    "lock_replaced": refused(
        "supervisor.lock is not the file whose lock was taken.",
        "Somebody replaced it, so another process may hold the lock of the new file.",
        "Find out who replaced it; never remove lock files.",
    ),
    "store_blocked": attention(
        "The store holds something that the helper refuses, or that could not be read.",
        "What the helper would not start on must not be changed by this tool either.",
        "Run `lease verify`, and put in order what it names.",
    ),
    "phase_not_retirable": attention(
        "The record's phase is not one of a tombstone.",
        "Only `creating` and `uncertain` can outlive a healthy helper; every other phase heals by starting it.",
        "Start the helper, or use `lease reconcile`.",
    ),
    "record_changed": attention(
        "The record is not what it was at the review or at the first read.",
        "Bytes, inode or times differ, so somebody worked on it.",
        "Review again, and give the new hash.",
    ),
    "lease_unknown": refused(
        "The store has no good record of this lease.",
        "It was never there, is gone, or is bad. A missing record says nothing about its container.",
        "Run `lease list`, and `lease verify` for bad records.",
    ),
    "plan_changed": attention(
        "The plan is no longer the one that was confirmed.",
        "Records or containers changed since the review.",
        "Review the plan that is printed, and confirm its hash.",
    ),
    "state_dir_not_local": attention(
        "The state directory is not on a local file system of a known type.",
        "Locks and files may be kept elsewhere, so holding the lock here excludes nobody for certain.",
        "Work on the host that has the file system.",
    ),
    "engine_unavailable": attention(
        "The engine that the record names did not answer.",
        "It is away, frozen or broken. A request may wait in it and still be carried out.",
        "Start that engine, or find what holds it up, and try again.",
    ),
    "engine_unsupported": attention(
        "The daemon is not an engine on which the facts were replayed.",
        "How long a request can live in it was measured on Docker Engine 20.10 only.",
        "Keep the record; raise the admission limits if capacity is the complaint.",
    ),
    "engine_storage_new": attention(
        "The engine's data root is newer than the record, or its age cannot be told.",
        "The container may lie in an older data root that is not in use now.",
        "Find the data root that was in use when the record was written.",
    ),
    "creation_in_flight": attention(
        "The name is reserved, and no container can be seen.",
        "A create is half done: its client may be gone, and the container will appear later.",
        "Wait until it has appeared, then start the helper or use `lease reconcile`.",
    ),
    "fence_failed": attention(
        "The fence could not be made.",
        "Without it, races during the collection of evidence could end in a container.",
        "Read the message, and try again.",
    ),
    "fence_broken": attention(
        "The fence did not stand throughout.",
        "It was removed or replaced by somebody, for instance by a prune, so a container could have been born and be gone.",
        "Start over.",
    ),
    "fence_left": attention(
        "The fence could not be removed.",
        "It blocks the lease's name: the helper complains each second and can resolve nothing until it is gone.",
        "Run `lease fences`, and confirm.",
    ),
    "fence_own": attention(
        "A fence of ours was left behind.",
        "A run was interrupted. The fence blocks the lease's name.",
        "Run `lease fences` and confirm, or run `lease retire` again.",
    ),
    "fence_foreign": attention(
        "Something carries our fence label with a nonce that this operator's folder does not know.",
        "Another operator made it, or anybody: a label is no proof.",
        "Ask who made it; it is left alone here.",
    ),
    "fence_in_use": attention(
        "The fence belongs to a run that is at work now.",
        "Its note is locked by that run.",
        "Wait until that run has ended.",
    ),
    "fence_note_stale": info(
        "A note about a fence that is not there any more.",
        "A run was interrupted before or after the fence itself.",
        "Run `lease fences` and confirm once the note is an hour old; until then its creation may still be carried out.",
    ),
    "engine_changed": attention(
        "The engine at the end of the run is not the one of its beginning.",
        "It was restarted or replaced meanwhile.",
        "Start over; with a witness from before, that may even be a proof.",
    ),
    "boot_changed": attention(
        "The boot at the end of the run is not the one of its beginning.",
        "The host's identity is not stable.",
        "Start over.",
    ),
    "staging_unacknowledged": attention(
        "The record protects snapshots, and their loss was not acknowledged.",
        "The moment the record goes, any runtime process may delete the copies it protected.",
        "Copy what is needed, then repeat with --acknowledge-staging.",
    ),
    "receipt_unavailable": attention(
        "The receipt cannot be written or signed.",
        "Nothing is retired without a signed receipt.",
        "Run `key init`, and make the operator's folder writable.",
    ),
    "not_confirmed": attention(
        "The record's digest was not repeated, so nothing was done.",
        "Giving the hash that was reviewed is the consent.",
        "Repeat with --confirm and the hash that is printed.",
    ),
    "client_alive": attention(
        "A process that may still send the request is alive.",
        "Its command line names the lease, it holds or names the environment file, or it is the recorded client with the recorded environment.",
        "Let it end, or end it; then start over.",
    ),
    "client_scan_unreliable": attention(
        "That no client is alive could not be shown.",
        "Rights, namespaces or /proc did not allow to see every process.",
        "Run as root on the host itself, outside of any container.",
    ),
    "client_is_wrapper": attention(
        "The recorded client is not a plain Docker client.",
        "A script or anything else can keep the request elsewhere: in memory, in a detached child, in another tool.",
        "Only a reboot between two visits helps, and only if the wrapper's SHA-256 is listed as reviewed.",
    ),
    "census_unreadable": attention(
        "The engine's connections could not be counted.",
        "Rights, or the kernel, or a control count that saw nothing.",
        "Run as root with all capabilities on the host itself.",
    ),
    "census_foreign_connection": attention(
        "Others hold connections to the engine.",
        "An event follower or an attached terminal looks like a request that is still at work.",
        "Choose a quiet hour, or restart the engine between two witnesses.",
    ),
    "wall_clock_only": attention(
        "Only the wall clock says that host or engine started after the record's last write.",
        "A clock can be stepped; and for phase `creating` a client may have been started after that write.",
        "Use witnesses; or, for phase `uncertain` and a clock that is trusted, --accept-wall-clock.",
    ),
    "engine_socket_activated": attention(
        "The engine was replaced, but its listener lives on.",
        "A request in the listener's queue is carried out by the next engine.",
        "Let the engine be quiet, so that its connections can be counted.",
    ),
    "fence_only": attention(
        "A fence shows only that nothing was reserved while it stood.",
        "Requests not yet sent, queued or being read outlive any fence, however long it stands.",
        "Leave a witness with --lock, restart the engine in a quiet hour, and come back.",
    ),
    "absence_only": attention(
        "Only the absence of the container is known.",
        "It can be missing because the request was refused, or because it has not got there yet.",
        "Leave a witness with --lock, restart the engine or reboot, and come back.",
    ),
    "elapsed_only": attention(
        "Only time has passed.",
        "No stage of a request has a time limit.",
        "Leave a witness with --lock, restart the engine or reboot, and come back.",
    ),
    "flush_missing": attention(
        "No client is alive, but what was sent before may still be at work.",
        "A request can wait in the listener's queue or in the engine, its client long gone.",
        "Let the engine be quiet, restart it between two witnesses, or reboot.",
    ),
    "events_only": attention(
        "The engine's event log shows a creation under this name.",
        "A labelled impostor looks alike, and the log forgets after 256 entries.",
        "It is noted; it proves nothing.",
    ),
    "events_seen": info(
        "The engine's event log shows a creation under this name.",
        "It is noted in the receipt, and no part of the proof.",
        "Nothing.",
    ),
    "attestation_only": attention(
        "A statement was given, and it proves nothing.",
        "The word of a person, a ticket or a log line cannot be checked.",
        "It is kept in the receipt beside a proof, never instead of one.",
    ),
    "late_container": attention(
        "A container of the lease appeared after the fence was taken away.",
        "A request was on its way after all. The record was kept.",
        "Start the helper, or use `lease reconcile`: container and record are removed.",
    ),
    "proof_reboot_witnessed": info(
        "The host was rebooted after the record was witnessed.",
        "Client, queue and engine memory died with the old boot, and no helper creates again for this record.",
        "Nothing.",
    ),
    "proof_engine_replaced": info(
        "Engine and listener were replaced after a clean scan under the lock.",
        "Nobody could send the request any more, and whatever had been sent went with the old listener and engine.",
        "Nothing.",
    ),
    "proof_engine_quiescent": info(
        "No client is alive, and the engine's queue and connections were empty.",
        "Nobody can send the request any more, and whatever had been sent was worked off.",
        "Nothing.",
    ),
    "proof_reboot_by_clock": info(
        "The host booted at least an hour after the record's last write, by the clock.",
        "The operator accepted the clock's word.",
        "Nothing.",
    ),
    "proof_engine_replaced_by_clock": info(
        "The engine started at least an hour after the record's last write, by the clock.",
        "The operator accepted the clock's word.",
        "Nothing.",
    ),
    "retired": info(
        "The record was retired.",
        "Its admission and its snapshots are free. It settles neither the run, nor its budget, nor any effect.",
        "Start the helper again, if it was stopped.",
    ),
    "already_retired": info(
        "A complete receipt says that this record was retired before.",
        "The record is not there, and there is nothing left to do.",
        "Nothing.",
    ),
    "retirement_completed": info(
        "The receipt of an interrupted retirement was completed.",
        "An earlier run stopped between its intent and its receipt, and the record is not there now. Whether that run or a helper removed it is not established.",
        "Nothing.",
    ),
    "retirement_unfinished": info(
        "An earlier run left an intent without a receipt, and the record is there.",
        "It stopped before the record was removed, or the removal did not reach the disk. Evidence is gathered anew.",
        "Nothing.",
    ),
    "container_removed": info(
        "The lease's container was removed, and its absence confirmed.",
        "Its name, label and, where recorded, its id were the lease's.",
        "Nothing.",
    ),
    "removal_failed": attention(
        "The container could not be removed.",
        "The engine refused or did not answer; the record is kept.",
        "Read the engine's message, and try again.",
    ),
    "removal_unconfirmed": attention(
        "The container is still there after its removal.",
        "The engine has not finished, or something made it again; the record is kept.",
        "Look at its state, and try again.",
    ),
    "record_retired": info(
        "The record was removed, as the helper would have done.",
        "Its container is gone from the engine that answered.",
        "Nothing.",
    ),
    "witness_unlocked": info(
        "The visit did not hold the store's lock.",
        "It serves as proof of a reboot, and not of a replaced engine.",
        "Stop the helper and use --lock, if the engine is to be restarted instead.",
    ),
    "operator_file_unusable": attention(
        "A file of the operator's own about leases cannot be used.",
        "It is not private, not whole, or not one of ours.",
        "Find out who changed it, and move it out of the operator's folder.",
    ),
    "review_list_invalid": refused(
        "The list of reviewed wrappers cannot be used.",
        "It holds one SHA-256 in 64 hex digits a line; text after white space is a remark.",
        "Correct the file.",
    ),
}
