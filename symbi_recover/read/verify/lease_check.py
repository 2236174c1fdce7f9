"""What the recorded daemon says about each lease, compared exactly (leases.md sections 7, 9, 14 and 18.4).

For one container lease, in order:

1. the endpoint from the record alone; one that is remote or unclear is named, and nothing is asked;
2. whether a question would only start the daemon, which then is not asked; what it is, and which process serves the
   socket;
3. three questions: by recorded id, by name, by label; every answer is compared on our side;
4. the verdict: name, label and, where recorded, id must all fit. Only a 404 about the container is absence, and
   absence never proves that a creation cannot still complete;
5. what the engine says of the state against what this host's processes show.

One failure of a daemon is not tried again for the next lease, and after eight that are slow no other is asked. Nothing
is changed anywhere.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from symbi_recover.core.codes import finding
from symbi_recover.core.codes.daemon import UNANSWERED
from symbi_recover.core.findings import Finding, NotChecked, Severity
from symbi_recover.core.lease_records import LABEL, ContainerState, Created
from symbi_recover.core.leases import (
    CheckReport,
    EndpointView,
    EngineView,
    LeaseCheck,
    LeaseView,
    StoreReport,
    Verdict,
)
from symbi_recover.read.daemon.activation import ASLEEP, engine_runs, waits_for_start
from symbi_recover.read.daemon.endpoint import (
    DEFAULT_SOCKET,
    Reader,
    changed_since,
    read_configuration,
    resolve,
)
from symbi_recover.read.daemon.listener import Listener, find_engine
from symbi_recover.read.daemon.questions import DaemonError, Engine, EngineFacts
from symbi_recover.read.evidence.host import sees_whole_host
from symbi_recover.read.evidence.kernel import PROC, CannotKnow
from symbi_recover.read.retirement.host import Host, RealHost
from symbi_recover.read.verify.container import Seen, container_views, judge_container
from symbi_recover.read.verify.container_processes import HostProcesses, numbered, why_not_compared
from symbi_recover.read.verify.lease_judge import refusing

Connect = Callable[[str], Engine]
_MOST_SLOW = 8
"""Daemons that may keep a command waiting; a store of many records may name as many."""


class _Daemon:
    """One socket that was asked, and how it failed if it did."""

    def __init__(self, path: str, connect: Connect, proc: str, host: Host, slow: int, *, named: bool) -> None:
        """Ask it what it is, unless that would start it, or `slow` others did not answer in time already.

        Args:
            path: of its socket.
            connect: makes an engine for it.
            proc: where proc is mounted.
            host: whose processes may serve the socket.
            slow: daemons that did not answer in time before.
            named: by a record; another is asked only where that is known to start nothing.
        """
        self.path = path
        self.failure: DaemonError | None = None
        self.engine: Engine | None = None
        self.facts: EngineFacts | None = None
        self.listener: Listener | None = None
        self.not_checked: tuple[NotChecked, ...] = ()
        try:
            _give_up(slow)
            self._leave_asleep(host, named=named)
            self.engine = connect(path)
            self.facts = self.engine.facts()
        except DaemonError as error:
            self.failure = error
        pid = self.engine.listener_pid() if self.engine is not None else None
        self.listener = find_engine(path, pid, proc)

    def _leave_asleep(self, host: Host, *, named: bool) -> None:
        """Look whether a question would start an engine.

        Raises:
            DaemonError: `engine_asleep`.
        """
        waits = waits_for_start(self.path, init=host.init, pids=lambda _: host.pids())
        if waits is True:
            raise DaemonError("engine_asleep", ASLEEP, stage="connect")
        if isinstance(waits, CannotKnow) and not engine_runs(pids=lambda _: host.pids()):
            if not named:
                raise DaemonError("engine_asleep", f"{ASLEEP}: {waits.detail}", stage="connect")
            what = f"whether the question started the engine at {self.path}"
            self.not_checked = (NotChecked(what, waits.detail),)

    def findings(self, where: str, view: LeaseView) -> Iterator[Finding]:
        """What has to be said about this daemon for one record."""
        listener = self.listener
        api_version = view.record.docker_environment.get("DOCKER_API_VERSION")
        if listener is not None and (
            listener.linked or listener.led_elsewhere(max(view.mtime_ns, view.ctime_ns))
        ):
            message = f"{self.path} leads to {listener.real_path}"
            yield finding("endpoint_link", message, path=where)
        if listener is not None and listener.code is not None and self.failure is None:
            # No census is taken here; that the kernel lists no sockets only keeps the engine from being known.
            code = "engine_unseen" if listener.code == "census_unreadable" else listener.code
            yield finding(code, listener.reason or "", path=where)
        if self.facts is not None and api_version and not _within(api_version, self.facts):
            lowest, highest = self.facts.min_api_version, self.facts.api_version
            message = f"the record asks for {api_version}, the daemon speaks {lowest or '?'} to {highest}"
            yield finding("recorded_version_refused", message, path=where)

    def view(self) -> EngineView | None:
        """The daemon as the report shows it."""
        facts, listener = self.facts, self.listener
        if facts is None or listener is None:
            return None
        return EngineView(
            version=facts.version,
            api_version=facts.api_version,
            min_api_version=facts.min_api_version,
            asked_api_version=facts.asked_api_version,
            components=facts.components,
            engine_id=facts.engine_id,
            data_root=facts.data_root,
            listener_pid=listener.owner_pid,
            listener_program=listener.owner_program,
            socket_inode=listener.socket_inode,
        )


def _give_up(slow: int) -> None:
    if slow >= _MOST_SLOW:
        message = f"not asked, since {slow} daemons before it did not answer in time; name its lease alone"
        raise DaemonError("daemon_slow", message, stage="connect")


class Checker:
    """Asks daemons about the leases of one store; `close` when done."""

    def __init__(
        self,
        connect: Connect,
        *,
        home: str | None,
        read: Reader = read_configuration,
        proc: str = PROC,
        host: Host | None = None,
        default: str = DEFAULT_SOCKET,
    ) -> None:
        """Prepare.

        Args:
            connect: makes an engine for a socket's path.
            home: of the helper's account, see `endpoint.account_home`.
            read: gives the client's configuration files.
            proc: where proc is mounted.
            host: whose processes may serve a socket; this one by default.
            default: the socket of a client without configuration.
        """
        self.default = default
        self.host = RealHost() if host is None else host
        self.connect = connect
        self.home = home
        self.read = read
        self.proc = proc
        self.daemons: dict[str, _Daemon] = {}
        self.processes = HostProcesses(proc)

    def close(self) -> None:
        """Close every connection."""
        for daemon in self.daemons.values():
            if daemon.engine is not None:
                daemon.engine.close()

    def check(self, view: LeaseView, where: str, *, supervised: bool) -> LeaseCheck:
        """Ask about one good record.

        Args:
            view: from `judge`.
            where: the record's path.
            supervised: a helper is running.
        """
        if not isinstance(view.record.state, ContainerState):
            skipped = finding("check_not_asked", f"phase {view.phase}", path=where)
            return _check(view, "check_not_asked", None, (skipped,))
        environment = view.record.docker_environment
        endpoint = resolve(environment, home=self.home, read=self.read)
        endpoint = changed_since(endpoint, max(view.mtime_ns, view.ctime_ns))
        if endpoint.socket is None:
            shown = endpoint.view
            code = shown.code or "endpoint_unresolved"
            said = f"{shown.address}: {shown.reason}" if shown.address else shown.reason or ""
            return _check(view, code, shown, (finding(code, said, path=where),))
        daemon = self._daemon(endpoint.socket)
        found = tuple(daemon.findings(where, view))
        try:
            if daemon.failure is not None or daemon.engine is None:
                raise daemon.failure or DaemonError("daemon_away", "not connected", stage="connect")
            seen = _ask(daemon.engine, view)
            whole = sees_whole_host(self.proc) is True
            unlike = why_not_compared(daemon.listener, self.proc)
            contradiction = self.processes.contradictions(
                daemon.engine, view, seen, numbers=whole and unlike is None
            )
        except DaemonError as error:
            daemon.failure = error
            failed = finding(error.code, f"{daemon.path}: {error.message}", path=where)
            return _check(view, error.code, endpoint.view, (*found, failed), daemon.view())
        verdict, judged = judge_container(view, seen, where, supervised=supervised)
        judged += [finding("engine_contradiction", text, path=where) for text in contradiction]
        result = _check(view, verdict, endpoint.view, (*found, *judged), daemon.view())
        left = () if whole else (_NO_PROCESSES,)
        if whole and unlike is not None and numbered(seen):
            left = (NotChecked(f"the process numbers that {daemon.path} gives", unlike),)
        return replace(result, containers=container_views(seen), not_checked=left)

    def not_checked(self) -> tuple[NotChecked, ...]:
        """What could not be told before the daemons were asked."""
        asked = [
            daemon
            for daemon in self.daemons.values()
            if daemon.failure is None or daemon.failure.code != "daemon_away"
        ]
        return tuple(one for daemon in asked for one in daemon.not_checked)

    def orphans(self, leases: Mapping[str, str]) -> list[Finding]:
        """Containers that carry the label of a lease whose record is bad, the only clue that is left.

        The daemons asked so far are asked, and if none of them answers, the default one where its socket is there.

        Args:
            leases: the records' paths, by lease.
        """
        if not any(self._answering()) and os.path.lexists(self.default):
            self._daemon(self.default, named=False)
        found: list[Finding] = []
        for lease, where in leases.items():
            for daemon, engine in self._answering():
                try:
                    listed = engine.labelled(LABEL, lease)
                except DaemonError as error:
                    daemon.failure = error
                    continue
                found += [
                    finding(
                        "label_orphan", f"container {one.id}, state {one.state}, at {daemon.path}", path=where
                    )
                    for one in listed
                ]
        return found

    def asked_for_labels(self) -> str:
        """Which daemons answered about labels and which did not, in words."""
        there = [daemon.path for daemon, _ in self._answering()]
        silent = [f"{path} ({one.failure.code})" for path, one in sorted(self.daemons.items()) if one.failure]
        said = [f"looked for at {', '.join(there)}, and nowhere else"] if there else []
        said += [f"no answer from {', '.join(silent)}"] if silent else []
        return "; ".join(said) or "no daemon was asked"

    def _answering(self) -> Iterator[tuple[_Daemon, Engine]]:
        for _, daemon in sorted(self.daemons.items()):
            if daemon.engine is not None and daemon.failure is None:
                yield daemon, daemon.engine

    def _daemon(self, path: str, *, named: bool = True) -> _Daemon:
        if path not in self.daemons:
            asked = [one.failure for one in self.daemons.values() if one.engine is not None]
            slow = sum(failure is not None and failure.code == "daemon_slow" for failure in asked)
            self.daemons[path] = _Daemon(path, self.connect, self.proc, self.host, slow, named=named)
        return self.daemons[path]


_NO_PROCESSES = NotChecked(
    "the engine's word against processes", "only part of the host is visible from here"
)


def check_store(report: StoreReport, checker: Checker, leases: tuple[str, ...] = ()) -> CheckReport:
    """Ask about the good records of a store, and about the labels of bad ones.

    Args:
        report: from `judge`.
        checker: not yet used; stays open.
        leases: only these; all by default.
    """
    supervised = report.helper.supervises
    checks = [
        checker.check(view, f"{report.state_dir}/{view.lease}.json", supervised=supervised)
        for view in report.records
        if not leases or view.lease in leases
    ]
    findings = [found for check in checks for found in check.findings]
    bad = {
        entry.lease: f"{report.state_dir}/{entry.name}"
        for entry in report.entries
        if entry.lease is not None
        and entry.name == f"{entry.lease}.json"
        and (not leases or entry.lease in leases)
    }
    if bad:
        findings += checker.orphans(bad)
    return CheckReport(
        state_dir=report.state_dir,
        verdict=_verdict(report, findings),
        store_blocked=report.store_blocked,
        helper=report.helper,
        checks=tuple(checks),
        findings=(*refusing(report), *findings),
        not_checked=(
            NotChecked(
                "creations on their way", "no answer of a daemon shows that a request can no longer complete"
            ),
            *((NotChecked("containers of bad records", checker.asked_for_labels()),) if bad else ()),
            *checker.not_checked(),
            *dict.fromkeys(left for check in checks for left in check.not_checked),
        ),
    )


def _verdict(report: StoreReport, findings: list[Finding]) -> Verdict:
    refused = {one.code for one in findings if one.severity is Severity.REFUSED}
    if report.store_blocked:
        return report.verdict
    if refused - UNANSWERED:
        return "contradicted"
    if refused or report.store_blocked is None:
        return "unexamined"
    return "attention" if any(one.severity is Severity.ATTENTION for one in findings) else "sound"


def _check(
    view: LeaseView,
    verdict: str,
    endpoint: EndpointView | None,
    findings: tuple[Finding, ...],
    engine: EngineView | None = None,
) -> LeaseCheck:
    return LeaseCheck(
        lease=view.lease,
        phase=view.phase,
        record_sha256=view.sha256,
        verdict=verdict,
        endpoint=endpoint,
        engine=engine,
        containers=(),
        findings=findings,
    )


def _ask(engine: Engine, view: LeaseView) -> Seen:
    state = view.record.state
    by_id = engine.inspect(state.container_id) if isinstance(state, Created) else None
    return Seen(by_id, engine.inspect(view.record.name), engine.labelled(LABEL, view.lease))


def _within(text: str, facts: EngineFacts) -> bool:
    numbers = [_version(one) for one in (facts.min_api_version or "1.0", text, facts.api_version)]
    lowest, asked, highest = numbers
    return lowest is None or highest is None or (asked is not None and lowest <= asked <= highest)


def _version(text: str) -> tuple[int, int] | None:
    match = re.fullmatch(r"v?([0-9]{1,4})\.([0-9]{1,4})", text)
    return (int(match.group(1)), int(match.group(2))) if match else None
