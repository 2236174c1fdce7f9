"""Codes about the Docker daemon's answers and the way to it (leases.md sections 7, 9 and 18.4)."""

from symbi_recover.core.findings import Code, attention, info, refused

_LOOK = "Look at the container by its full id before anything is removed; this tool leaves it alone."

CODES: dict[str, Code] = {
    "endpoint_unresolved": refused(
        "Where the recorded client would have connected cannot be told.",
        "Clients read the recorded settings in different ways, a configuration file is not usable, or it changed after the record. The current environment is never used instead.",
        "Find out which daemon the runtime used, and restore the client's configuration as it was.",
    ),
    "endpoint_remote": refused(
        "The record names a daemon that is not reached by a Unix socket of this host.",
        "Over TCP or SSH neither the queue nor the engine can be seen, so no answer from there proves anything about a request on its way.",
        "Ask on the host where that daemon runs.",
    ),
    "endpoint_proxied": attention(
        "Something other than the engine listens on the socket.",
        "The process that called listen is neither dockerd nor pid 1, so requests may wait in it, and its answers may be its own.",
        "Find the engine's own socket; a proxy's answer proves nothing.",
    ),
    "endpoint_link": attention(
        "The socket's path is a symbolic link.",
        "A client follows it, and it may have pointed at another engine when the record was written.",
        "Find out who made the link and when; absence at one engine says nothing about another.",
    ),
    "engine_ambiguous": attention(
        "Which engine serves the socket cannot be told.",
        "Several engines run on this host, several hold the listener, or none does.",
        "Stop the engines that are not meant, or ask on the host itself, as root.",
    ),
    "engine_unseen": info(
        "The kernel does not tell from here who serves the socket.",
        "Rights are missing, or the engine lives in another PID namespace.",
        "Ask on the host itself, as root.",
    ),
    "engine_contradiction": refused(
        "What the engine says of a container is not what this host shows.",
        "After a restart an engine may have lost track: it calls a container ended whose process lives, or running when its process is gone. The engine's word alone does not prove that work has stopped.",
        "Trust the processes; have the engine looked at before anything is retired.",
    ),
    "recorded_version_refused": attention(
        "The daemon does not speak the API version that the record asks for.",
        "The helper's own client fails on it, which is never the same as an absent container.",
        "Have the runtime's DOCKER_API_VERSION corrected; the record keeps the old one.",
    ),
    "daemon_away": refused(
        "The recorded daemon could not be reached.",
        "Its socket is missing, refuses, or may not be opened. Nothing is known about its containers.",
        "Start the daemon that the record names, or ask as root; another daemon's answer proves nothing.",
    ),
    "engine_asleep": refused(
        "The recorded daemon does not run, and a question would start it.",
        "A starter of services (socket activation) holds the socket, and no engine. Looking changes nothing, so nothing was asked, and nothing is known about its containers.",
        "Start the engine yourself, by its service (`systemctl start docker`), and ask again; at its start it may carry out what waits in its queue.",
    ),
    "daemon_slow": refused(
        "The daemon did not answer in time.",
        "It is stopped, overloaded or broken. A request may wait in it and still be carried out.",
        "Find out what holds the daemon up, and ask again.",
    ),
    "daemon_oversized": refused(
        "The daemon's answer is larger than any honest one.",
        "The reading was cut off, so nothing of it counts.",
        "Find out what listens on the socket.",
    ),
    "daemon_malformed": refused(
        "The daemon's answer cannot be read.",
        "It ended early, is no HTTP or no JSON, or lacks what was asked for. It is not an answer of absence.",
        "Find out what listens on the socket, and ask again.",
    ),
    "daemon_failed": refused(
        "The daemon answered with an error.",
        "Only a 404 that says that there is no such container counts as absence; this was something else.",
        "Read the daemon's log, and ask again.",
    ),
    "daemon_version": refused(
        "The daemon speaks no API version that this tool knows.",
        "This tool asks in versions 1.24 to 1.44, whichever is the highest both know. A version error says nothing about containers.",
        "Ask with a release of this tool that knows the daemon.",
    ),
    "container_present": attention(
        "The lease's container is there, with its name, its label and, where recorded, its id.",
        "A helper removes it and then the record. A tombstone with its container is no longer in doubt.",
        "Start the helper, or use `lease reconcile`.",
    ),
    "container_supervised": info(
        "The lease's container is there, and a helper is running.",
        "Name, label and recorded id fit.",
        "Nothing.",
    ),
    "container_renamed": attention(
        "The lease's container is there under another name.",
        "Its label, and its id where one is recorded, are the lease's. A helper that looks by name does not see it.",
        "Give it its old name back, so that the helper finds it; where the record holds its id, `lease reconcile` removes it as it is.",
    ),
    "container_gone": attention(
        "The recorded container is not known to the daemon.",
        "A known id is gone from the daemon that answered; a changed context or socket would look the same.",
        "If this is the daemon that was meant, start the helper or use `lease reconcile`: the record is retired.",
    ),
    "container_absent": attention(
        "No container has the lease's name or label.",
        "The creation may have been refused, or be on its way: queued, half done, or not yet sent. Absence, however often it is seen, is no proof.",
        "Raise the admission limits if capacity is the only complaint; else `lease witness`, then `lease retire`.",
    ),
    "container_several": refused(
        "Several containers carry the lease's label.",
        "A lease has one container; another one was made by something else.",
        _LOOK,
    ),
    "container_mismatch": refused(
        "A container has the recorded id and not the lease's label, or the daemon answered about another one.",
        "Name, label and recorded id must all fit before a container counts as the lease's.",
        _LOOK,
    ),
    "name_foreign": refused(
        "Another container has the lease's name.",
        "Its label is missing or another's, or its id is not the recorded one. The helper keeps the record and complains each second.",
        _LOOK,
    ),
    "container_state_unknown": attention(
        "The daemon names a container state that is not known.",
        "It is shown as it came; nothing is concluded from it.",
        "Compare with the daemon's own documentation for its version.",
    ),
    "label_orphan": attention(
        "A container carries the label of a lease whose record is bad.",
        "The helper refuses the whole store because of that record, so nobody ends this container.",
        "Keep the store as it is; look at the container by its full id.",
    ),
    "check_not_asked": info(
        "The daemon was not asked about this lease.",
        "Its worker is no container.",
        "`lease verify` looks at VM and delegated workers.",
    ),
    "helper_unreachable": refused(
        "The helper's socket cannot be connected to.",
        "It is missing, refuses, or may not be opened; a helper that hangs at start holds the lock and has no socket.",
        "Ask as the account of the helper or as root; what the files say is shown all the same.",
    ),
    "helper_foreign": refused(
        "The helper's socket is served by another account.",
        "A helper runs as the owner of its directory; somebody else's answer counts for nothing.",
        "Find out which process listens there.",
    ),
    "helper_silent": refused(
        "The helper gave no whole answer.",
        "It closes without a word when the asker's account or the expected build is not the right one, and it may be busy or stopped. That is unknown, never empty.",
        "Ask as the helper's own account; for another build than release 2.0.1 give its --fingerprint.",
    ),
    "helper_failed": refused(
        "The helper could not inspect itself.",
        "Its readers are busy, or its store cannot be read. That is unknown, never empty.",
        "Ask again in a moment, and run `lease verify`.",
    ),
    "helper_malformed": refused(
        "The helper's answer cannot be read.",
        "It is no JSON of the expected form, too large, or more than was asked for.",
        "Find out which program serves the socket.",
    ),
    "capacity_differs": attention(
        "The helper counts otherwise than its files say.",
        "Limits are read only at the helper's start, and records may have changed in between; each difference is named.",
        "Compare the differences; a restart of the helper makes it read everything anew.",
    ),
    "admission_full": attention(
        "The helper admits no new worker.",
        "A limit is reached, or a charge is unknown. Every record counts, whatever its phase.",
        "Resolve what `lease verify` lists, or raise the limits in admission.conf with the helper stopped.",
    ),
    "capacity_unsteady": info(
        "Records changed while the helper was asked.",
        "Work is going on, so files and answer are of different moments.",
        "Ask again in a quiet moment.",
    ),
}

UNANSWERED = frozenset(
    [
        "daemon_away",
        "engine_asleep",
        "daemon_slow",
        "daemon_oversized",
        "daemon_malformed",
        "daemon_failed",
        "daemon_version",
        "endpoint_unresolved",
        "endpoint_remote",
    ]
)
"""With one of these the question has no answer."""
