"""Codes about the Docker daemon's answers and the way to it (leases.md sections 7, 9 and 18.4)."""

from symbi_recover.core.findings import Code, Severity

_REFUSED, _ATTENTION, _INFO = Severity.REFUSED, Severity.ATTENTION, Severity.INFO
_LOOK = "Look at the container by its full id before anything is removed; this tool leaves it alone."

CODES: dict[str, Code] = {
    "endpoint_unresolved": Code(
        severity=_REFUSED,
        meaning="Where the recorded client would have connected cannot be told.",
        why="Clients read the recorded settings in different ways, a configuration file is not usable, or it changed after the record. The current environment is never used instead.",
        next="Find out which daemon the runtime used, and restore the client's configuration as it was.",
    ),
    "endpoint_remote": Code(
        severity=_REFUSED,
        meaning="The record names a daemon that is not reached by a Unix socket of this host.",
        why="Over TCP or SSH neither the queue nor the engine can be seen, so no answer from there proves anything about a request on its way.",
        next="Ask on the host where that daemon runs.",
    ),
    "endpoint_proxied": Code(
        severity=_ATTENTION,
        meaning="Something other than the engine listens on the socket.",
        why="The process that called listen is neither dockerd nor pid 1, so requests may wait in it, and its answers may be its own.",
        next="Find the engine's own socket; a proxy's answer proves nothing.",
    ),
    "endpoint_link": Code(
        severity=_ATTENTION,
        meaning="The socket's path is a symbolic link.",
        why="A client follows it, and it may have pointed at another engine when the record was written.",
        next="Find out who made the link and when; absence at one engine says nothing about another.",
    ),
    "engine_ambiguous": Code(
        severity=_ATTENTION,
        meaning="Which engine serves the socket cannot be told.",
        why="Several engines run on this host, several hold the listener, or none does.",
        next="Stop the engines that are not meant, or ask on the host itself, as root.",
    ),
    "engine_unseen": Code(
        severity=_INFO,
        meaning="The kernel does not tell from here who serves the socket.",
        why="Rights are missing, or the engine lives in another PID namespace.",
        next="Ask on the host itself, as root.",
    ),
    "engine_contradiction": Code(
        severity=_REFUSED,
        meaning="What the engine says of a container is not what this host shows.",
        why="After a restart an engine may have lost track: it calls a container ended whose process lives, or running when its process is gone. The engine's word alone does not prove that work has stopped.",
        next="Trust the processes; have the engine looked at before anything is retired.",
    ),
    "recorded_version_refused": Code(
        severity=_ATTENTION,
        meaning="The daemon does not speak the API version that the record asks for.",
        why="The helper's own client fails on it, which is never the same as an absent container.",
        next="Have the runtime's DOCKER_API_VERSION corrected; the record keeps the old one.",
    ),
    "daemon_away": Code(
        severity=_REFUSED,
        meaning="The recorded daemon could not be reached.",
        why="Its socket is missing, refuses, or may not be opened. Nothing is known about its containers.",
        next="Start the daemon that the record names, or ask as root; another daemon's answer proves nothing.",
    ),
    "engine_asleep": Code(
        severity=_REFUSED,
        meaning="The recorded daemon does not run, and a question would start it.",
        why="A starter of services (socket activation) holds the socket, and no engine. Looking changes nothing, so nothing was asked, and nothing is known about its containers.",
        next="Start the engine yourself, by its service (`systemctl start docker`), and ask again; at its start it may carry out what waits in its queue.",
    ),
    "daemon_slow": Code(
        severity=_REFUSED,
        meaning="The daemon did not answer in time.",
        why="It is stopped, overloaded or broken. A request may wait in it and still be carried out.",
        next="Find out what holds the daemon up, and ask again.",
    ),
    "daemon_oversized": Code(
        severity=_REFUSED,
        meaning="The daemon's answer is larger than any honest one.",
        why="The reading was cut off, so nothing of it counts.",
        next="Find out what listens on the socket.",
    ),
    "daemon_malformed": Code(
        severity=_REFUSED,
        meaning="The daemon's answer cannot be read.",
        why="It ended early, is no HTTP or no JSON, or lacks what was asked for. It is not an answer of absence.",
        next="Find out what listens on the socket, and ask again.",
    ),
    "daemon_failed": Code(
        severity=_REFUSED,
        meaning="The daemon answered with an error.",
        why="Only a 404 that says that there is no such container counts as absence; this was something else.",
        next="Read the daemon's log, and ask again.",
    ),
    "daemon_version": Code(
        severity=_REFUSED,
        meaning="The daemon speaks no API version that this tool knows.",
        why="This tool asks in versions 1.24 to 1.44, whichever is the highest both know. A version error says nothing about containers.",
        next="Ask with a release of this tool that knows the daemon.",
    ),
    "container_present": Code(
        severity=_ATTENTION,
        meaning="The lease's container is there, with its name, its label and, where recorded, its id.",
        why="A helper removes it and then the record. A tombstone with its container is no longer in doubt.",
        next="Start the helper, or use `lease reconcile`.",
    ),
    "container_supervised": Code(
        severity=_INFO,
        meaning="The lease's container is there, and a helper is running.",
        why="Name, label and recorded id fit.",
        next="Nothing.",
    ),
    "container_renamed": Code(
        severity=_ATTENTION,
        meaning="The lease's container is there under another name.",
        why="Its label, and its id where one is recorded, are the lease's. A helper that looks by name does not see it.",
        next="Give it its old name back, so that the helper finds it; where the record holds its id, `lease reconcile` removes it as it is.",
    ),
    "container_gone": Code(
        severity=_ATTENTION,
        meaning="The recorded container is not known to the daemon.",
        why="A known id is gone from the daemon that answered; a changed context or socket would look the same.",
        next="If this is the daemon that was meant, start the helper or use `lease reconcile`: the record is retired.",
    ),
    "container_absent": Code(
        severity=_ATTENTION,
        meaning="No container has the lease's name or label.",
        why="The creation may have been refused, or be on its way: queued, half done, or not yet sent. Absence, however often it is seen, is no proof.",
        next="Raise the admission limits if capacity is the only complaint; else `lease witness`, then `lease retire`.",
    ),
    "container_several": Code(
        severity=_REFUSED,
        meaning="Several containers carry the lease's label.",
        why="A lease has one container; another one was made by something else.",
        next=_LOOK,
    ),
    "container_mismatch": Code(
        severity=_REFUSED,
        meaning="A container has the recorded id and not the lease's label, or the daemon answered about another one.",
        why="Name, label and recorded id must all fit before a container counts as the lease's.",
        next=_LOOK,
    ),
    "name_foreign": Code(
        severity=_REFUSED,
        meaning="Another container has the lease's name.",
        why="Its label is missing or another's, or its id is not the recorded one. The helper keeps the record and complains each second.",
        next=_LOOK,
    ),
    "container_state_unknown": Code(
        severity=_ATTENTION,
        meaning="The daemon names a container state that is not known.",
        why="It is shown as it came; nothing is concluded from it.",
        next="Compare with the daemon's own documentation for its version.",
    ),
    "label_orphan": Code(
        severity=_ATTENTION,
        meaning="A container carries the label of a lease whose record is bad.",
        why="The helper refuses the whole store because of that record, so nobody ends this container.",
        next="Keep the store as it is; look at the container by its full id.",
    ),
    "check_not_asked": Code(
        severity=_INFO,
        meaning="The daemon was not asked about this lease.",
        why="Its worker is no container.",
        next="`lease verify` looks at VM and delegated workers.",
    ),
    "helper_unreachable": Code(
        severity=_REFUSED,
        meaning="The helper's socket cannot be connected to.",
        why="It is missing, refuses, or may not be opened; a helper that hangs at start holds the lock and has no socket.",
        next="Ask as the account of the helper or as root; what the files say is shown all the same.",
    ),
    "helper_foreign": Code(
        severity=_REFUSED,
        meaning="The helper's socket is served by another account.",
        why="A helper runs as the owner of its directory; somebody else's answer counts for nothing.",
        next="Find out which process listens there.",
    ),
    "helper_silent": Code(
        severity=_REFUSED,
        meaning="The helper gave no whole answer.",
        why="It closes without a word when the asker's account or the expected build is not the right one, and it may be busy or stopped. That is unknown, never empty.",
        next="Ask as the helper's own account; for another build than release 2.0.1 give its --fingerprint.",
    ),
    "helper_failed": Code(
        severity=_REFUSED,
        meaning="The helper could not inspect itself.",
        why="Its readers are busy, or its store cannot be read. That is unknown, never empty.",
        next="Ask again in a moment, and run `lease verify`.",
    ),
    "helper_malformed": Code(
        severity=_REFUSED,
        meaning="The helper's answer cannot be read.",
        why="It is no JSON of the expected form, too large, or more than was asked for.",
        next="Find out which program serves the socket.",
    ),
    "capacity_differs": Code(
        severity=_ATTENTION,
        meaning="The helper counts otherwise than its files say.",
        why="Limits are read only at the helper's start, and records may have changed in between; each difference is named.",
        next="Compare the differences; a restart of the helper makes it read everything anew.",
    ),
    "admission_full": Code(
        severity=_ATTENTION,
        meaning="The helper admits no new worker.",
        why="A limit is reached, or a charge is unknown. Every record counts, whatever its phase.",
        next="Resolve what `lease verify` lists, or raise the limits in admission.conf with the helper stopped.",
    ),
    "capacity_unsteady": Code(
        severity=_INFO,
        meaning="Records changed while the helper was asked.",
        why="Work is going on, so files and answer are of different moments.",
        next="Ask again in a quiet moment.",
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
