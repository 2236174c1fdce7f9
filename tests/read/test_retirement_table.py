"""Every row, every precondition and every refusal of the decision table (lease format, section 18.5)."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from symbi_recover.core.codes import CODES
from symbi_recover.core.findings import Severity
from symbi_recover.core.retirement import MARGIN_NS, Client, Evidence, Fence, Quiescence, Times
from symbi_recover.core.witness import Hit, Scan, WitnessFacts
from symbi_recover.read.retirement.table import decide, might_retire

SECOND_NS = 1_000_000_000
WRITTEN = 1_700_000_000_000_000_000
NOW = WRITTEN + 10 * MARGIN_NS
CLEAN = Scan(passes=2, processes=40)
FOUND = Scan(passes=1, processes=40, hits=(Hit(pid=7, program="/usr/bin/docker", why="names it"),))
BLIND = Scan(passes=2, processes=40, unreliable=("not run as root",))
QUIET = Quiescence(drained=True, control=1, connections=0, waiting=0)
FOREIGN = Quiescence(drained=True, control=2, connections=1, waiting=0, code="census_foreign_connection")
UNREADABLE = Quiescence(drained=True, control=0, code="census_unreadable")
STANDS = Fence(state="unbroken", container_id="f" * 64, image_id="sha256:" + "e" * 64, nonce="n")
OLD = Times(now_ns=NOW, last_write_ns=WRITTEN, boot_ns=WRITTEN - 1, engine_ns=WRITTEN - 1, synchronised=True)
PROOFS = (
    "proof_reboot_witnessed",
    "proof_engine_replaced",
    "proof_engine_quiescent",
    "proof_reboot_by_clock",
    "proof_engine_replaced_by_clock",
)


def witness(**facts):
    plain = {
        "unchanged": True,
        "rebooted": False,
        "replaced": False,
        "anchored": True,
        "own_listener": True,
        "same_storage": True,
    }
    return WitnessFacts(name="w", sha256="0" * 64, **(plain | facts))


REBOOTED = (witness(rebooted=True, anchored=False),)
REPLACED = (witness(replaced=True),)


def evidence(phase="uncertain", **facts):
    """All preconditions hold, and no row does: the client is plain and cannot be scanned for."""
    plain = {
        "phase": phase,
        "lock": "held",
        "store_blocked": False,
        "record_same": True,
        "local": True,
        "endpoint_code": None,
        "engine_codes": (),
        "storage": "older",
        "absence": None,
        "fence": STANDS,
        "same_engine": True,
        "same_boot": True,
        "staging_acknowledged": True,
        "receipt_ready": True,
        "confirmed": True,
        "client": Client(kind="plain", path="/usr/bin/docker"),
        "scans": (BLIND, BLIND),
        "times": OLD,
    }
    return Evidence(**(plain | facts))


def quiescent(phase="uncertain", **facts):
    return evidence(phase, **({"scans": (CLEAN, CLEAN), "quiescence": QUIET} | facts))


def by_clock(phase="uncertain", *, boot=False, engine=False, **facts):
    late = WRITTEN + MARGIN_NS
    times = replace(OLD, boot_ns=late if boot else WRITTEN, engine_ns=late if engine else WRITTEN)
    return evidence(phase, **({"times": times} | facts))


PHASES = pytest.mark.parametrize("phase", ["creating", "uncertain"])


def assert_retired(decision, *proofs):
    assert decision.retire
    assert decision.proofs == proofs
    assert decision.codes == proofs


def assert_refused(decision, *codes):
    assert not decision.retire
    assert set(codes) <= set(decision.codes), decision.codes
    assert not set(decision.codes) & set(PROOFS)


@PHASES
def test_t1_a_witnessed_reboot_retires_also_where_no_scan_can_be_made(phase):
    assert_retired(decide(evidence(phase, witnesses=REBOOTED)), "proof_reboot_witnessed")


@PHASES
@pytest.mark.parametrize(
    "facts",
    [{"unchanged": False}, {"rebooted": False}, {"same_storage": False}],
    ids=["record changed", "same boot", "other data root"],
)
def test_t1_needs_every_part(phase, facts):
    seen = (witness(**({"rebooted": True} | facts)),)
    assert not decide(evidence(phase, witnesses=seen)).retire


@PHASES
def test_t2_a_replaced_engine_after_a_clean_scan_under_the_lock_retires(phase):
    decision = decide(evidence(phase, scans=(CLEAN, CLEAN), witnesses=REPLACED))
    assert_retired(decision, "proof_engine_replaced")


@PHASES
@pytest.mark.parametrize(
    "facts",
    [{"unchanged": False}, {"replaced": False}, {"anchored": False}, {"same_storage": False}],
    ids=["record changed", "same engine", "no lock or no scan then", "other data root"],
)
def test_t2_needs_every_part_of_its_witness(phase, facts):
    seen = (witness(**({"replaced": True} | facts)),)
    assert not decide(evidence(phase, scans=(CLEAN, CLEAN), witnesses=seen)).retire


def test_t2_takes_its_parts_from_one_witness():
    seen = (witness(replaced=True, anchored=False), witness(replaced=True, same_storage=False))
    assert not decide(evidence(scans=(CLEAN, CLEAN), witnesses=seen)).retire


@PHASES
@pytest.mark.parametrize("scans", [(BLIND, CLEAN), (CLEAN, BLIND), ()], ids=["first", "second", "none"])
def test_t2_needs_clean_scans_now(phase, scans):
    assert not decide(evidence(phase, scans=scans, witnesses=REPLACED)).retire


@PHASES
def test_t3_a_quiet_engine_behind_a_fence_after_clean_scans_retires(phase):
    assert_retired(decide(quiescent(phase)), "proof_engine_quiescent")


@PHASES
def test_t3_holds_for_a_socket_activated_engine_too(phase):
    assert_retired(decide(quiescent(phase, activated=True)), "proof_engine_quiescent")


@PHASES
@pytest.mark.parametrize(
    "census",
    [
        None,
        FOREIGN,
        UNREADABLE,
        replace(QUIET, drained=False),
        replace(QUIET, control=0),
        replace(QUIET, control=None),
        replace(QUIET, connections=1),
        replace(QUIET, connections=None),
        replace(QUIET, waiting=1),
        replace(QUIET, waiting=None),
    ],
)
def test_t3_needs_drain_control_count_and_queue(phase, census):
    assert_refused(decide(quiescent(phase, quiescence=census)), "flush_missing")


def test_t4_the_clock_retires_only_an_uncertain_record_and_only_if_accepted():
    assert_refused(decide(by_clock(boot=True)), "wall_clock_only")
    assert_retired(decide(by_clock(boot=True, accept_wall_clock=True)), "proof_reboot_by_clock")
    assert_refused(decide(by_clock("creating", boot=True)), "wall_clock_only")
    assert_refused(decide(by_clock("creating", boot=True, accept_wall_clock=True)), "wall_clock_only")


def test_t5_the_clock_retires_only_an_uncertain_record_and_only_if_accepted():
    clean = {"scans": (CLEAN, CLEAN), "engine": True}
    assert_refused(decide(by_clock(**clean)), "wall_clock_only")
    assert_retired(decide(by_clock(**clean, accept_wall_clock=True)), "proof_engine_replaced_by_clock")
    assert_refused(decide(by_clock("creating", **clean)), "wall_clock_only")
    assert_refused(decide(by_clock("creating", **clean, accept_wall_clock=True)), "wall_clock_only")


def test_t5_needs_a_clean_scan_and_a_listener_of_the_engine_s_own():
    assert not decide(by_clock(engine=True, accept_wall_clock=True)).retire
    activated = by_clock(engine=True, scans=(CLEAN, CLEAN), accept_wall_clock=True, activated=True)
    assert_refused(decide(activated), "engine_socket_activated")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("boot_ns", WRITTEN + MARGIN_NS - 1),
        ("boot_ns", None),
        ("synchronised", False),
        ("synchronised", None),
        ("now_ns", WRITTEN - 1),
        ("now_ns", WRITTEN + MARGIN_NS - 1),
    ],
)
def test_the_clock_counts_only_with_its_margin_synchronised_and_without_a_future(field, value):
    late = by_clock(boot=True, accept_wall_clock=True)
    assert decide(late).retire
    assert not decide(replace(late, times=replace(late.times, **{field: value}))).retire


@pytest.mark.parametrize("started", ["boot_ns", "engine_ns"])
@pytest.mark.parametrize(
    ("after_ns", "counts"),
    [(-SECOND_NS, False), (0, False), (SECOND_NS, False), (MARGIN_NS - 1, False), (MARGIN_NS, True)],
    ids=["before", "equal", "1 s after", "almost an hour after", "an hour after"],
)
def test_f132_a_start_counts_by_the_clock_only_well_after_the_last_write(started, after_ns, counts):
    """Neither an equal time nor one second is beyond what a clock may be moved or a file's time be rounded."""
    late = by_clock(**{started.removesuffix("_ns"): True}, scans=(CLEAN, CLEAN), accept_wall_clock=True)
    times = replace(late.times, **{started: WRITTEN + after_ns})
    assert decide(replace(late, times=times)).retire is counts


@PHASES
def test_t6_a_replaced_engine_with_an_activated_listener_is_refused_without_a_census(phase):
    facts = {"witnesses": REPLACED, "scans": (CLEAN, CLEAN), "activated": True}
    assert_refused(decide(evidence(phase, **facts)), "engine_socket_activated", "flush_missing")
    assert decide(evidence(phase, **facts, quiescence=QUIET)).proofs == ("proof_engine_quiescent",)


@PHASES
def test_t7_to_t9_fence_absence_and_time_alone_are_refused(phase):
    assert_refused(decide(evidence(phase)), "fence_only", "absence_only", "elapsed_only")
    centuries = replace(OLD, now_ns=NOW + 10**19, synchronised=False)
    assert_refused(decide(evidence(phase, times=centuries)), "fence_only", "absence_only", "elapsed_only")
    young = replace(OLD, now_ns=WRITTEN + 29_000_000_000)
    assert "elapsed_only" not in decide(evidence(phase, times=young)).codes


@PHASES
@pytest.mark.parametrize(
    "unasked",
    [
        {"endpoint_code": "endpoint_remote"},
        {"endpoint_code": "endpoint_unresolved"},
        {"engine_codes": ("engine_unavailable",)},
    ],
)
def test_t8_absence_is_spoken_of_only_where_the_engine_was_asked(phase, unasked):
    decision = decide(evidence(phase, **unasked))
    assert_refused(decision, "elapsed_only")
    assert "absence_only" not in decision.codes
    assert "absence_only" in decide(evidence(phase, engine_codes=("endpoint_proxied",))).codes


@PHASES
def test_t11_a_client_that_was_found_does_not_hide_that_the_scan_was_unreliable(phase):
    both = replace(FOUND, unreliable=("hidepid",))
    assert_refused(decide(evidence(phase, scans=(both,))), "client_alive", "client_scan_unreliable")
    assert "client_scan_unreliable" not in decide(evidence(phase, scans=(FOUND,))).codes


@PHASES
def test_t10_an_anchor_without_flush_is_refused(phase):
    assert_refused(decide(evidence(phase, scans=(CLEAN, CLEAN))), "flush_missing")
    elsewhere = (witness(rebooted=True, same_storage=False),)
    assert_refused(decide(evidence(phase, witnesses=elsewhere)), "flush_missing")


@PHASES
@pytest.mark.parametrize("scans", [(FOUND,), (CLEAN, FOUND), (FOUND, CLEAN)])
def test_t11_a_living_client_speaks_against_every_row(phase, scans):
    everything = quiescent(phase, witnesses=(*REBOOTED, *REPLACED), scans=scans, accept_wall_clock=True)
    assert_refused(decide(everything), "client_alive")


@PHASES
def test_t11_an_unreliable_scan_is_no_anchor(phase):
    assert_refused(decide(quiescent(phase, scans=(CLEAN, BLIND))), "client_scan_unreliable")
    assert_refused(
        decide(quiescent(phase, scans=(CLEAN, replace(CLEAN, passes=1)))), "client_scan_unreliable"
    )


@PHASES
def test_t12_a_wrapper_is_refused_and_a_reviewed_one_is_good_for_a_witnessed_reboot_alone(phase):
    wrapper = Client(kind="wrapper", path="/opt/docker", sha256="1" * 64, why="a script")
    reviewed = replace(wrapper, kind="reviewed")
    for client in (wrapper, reviewed):
        assert_refused(decide(quiescent(phase, client=client)), "client_is_wrapper")
        replaced = evidence(phase, client=client, witnesses=REPLACED, scans=(CLEAN, CLEAN))
        assert_refused(decide(replaced), "client_is_wrapper")
        late = by_clock(phase, boot=True, client=client, accept_wall_clock=True)
        assert_refused(decide(late), "client_is_wrapper", "wall_clock_only")
    assert_refused(decide(evidence(phase, client=wrapper, witnesses=REBOOTED)), "client_is_wrapper")
    assert_retired(decide(evidence(phase, client=reviewed, witnesses=REBOOTED)), "proof_reboot_witnessed")


@PHASES
@pytest.mark.parametrize("code", ["endpoint_remote", "endpoint_unresolved"])
def test_t13_what_cannot_be_seen_is_refused(phase, code):
    assert_refused(decide(quiescent(phase, endpoint_code=code)), code)


@PHASES
def test_t14_and_t15_events_and_statements_are_noted_and_prove_nothing(phase):
    assert_refused(decide(evidence(phase, events=True, attested=True)), "events_only", "attestation_only")
    noted = decide(quiescent(phase, events=True, attested=True))
    assert noted.retire
    assert set(noted.codes) == {"proof_engine_quiescent", "events_seen"}


PRECONDITIONS = [
    ({"lock": "supervisor_running"}, "supervisor_running"),
    ({"lock": "lock_missing"}, "lock_missing"),
    ({"lock": "lock_replaced"}, "lock_replaced"),
    ({"lock": "lock_uncertain"}, "lock_uncertain"),
    ({"lock": "lock_unsafe"}, "lock_unsafe"),
    ({"lock": "not_taken"}, "not_confirmed"),
    ({"store_blocked": True}, "store_blocked"),
    ({"store_blocked": None}, "store_blocked"),
    ({"phase": "created"}, "phase_not_retirable"),
    ({"phase": "vm_creating"}, "phase_not_retirable"),
    ({"phase": "host_creating"}, "phase_not_retirable"),
    ({"record_same": False}, "record_changed"),
    ({"local": False}, "state_dir_not_local"),
    ({"endpoint_code": "endpoint_remote"}, "endpoint_remote"),
    ({"endpoint_code": "endpoint_unresolved"}, "endpoint_unresolved"),
    ({"engine_codes": ("endpoint_proxied",)}, "endpoint_proxied"),
    ({"engine_codes": ("engine_unsupported",)}, "engine_unsupported"),
    ({"engine_codes": ("engine_ambiguous",)}, "engine_ambiguous"),
    ({"engine_codes": ("engine_unseen",)}, "engine_unseen"),
    ({"engine_codes": ("census_unreadable",)}, "census_unreadable"),
    ({"engine_codes": ("engine_unavailable",)}, "engine_unavailable"),
    ({"storage": "newer"}, "engine_storage_new"),
    ({"storage": "unknown"}, "engine_storage_new"),
    ({"absence": "container_present"}, "container_present"),
    ({"absence": "container_renamed"}, "container_renamed"),
    ({"absence": "container_several"}, "container_several"),
    ({"absence": "name_foreign"}, "name_foreign"),
    ({"absence": "engine_unavailable"}, "engine_unavailable"),
    ({"fence": Fence(state="creation_in_flight")}, "creation_in_flight"),
    ({"fence": Fence(state="name_foreign")}, "name_foreign"),
    ({"fence": Fence(state="fence_failed")}, "fence_failed"),
    ({"fence": Fence(state="fence_broken")}, "fence_broken"),
    ({"fence": Fence()}, "fence_failed"),
    ({"same_engine": False}, "engine_changed"),
    ({"same_boot": False}, "boot_changed"),
    ({"staging_acknowledged": False}, "staging_unacknowledged"),
    ({"receipt_ready": False}, "receipt_unavailable"),
    ({"confirmed": False}, "not_confirmed"),
]


@pytest.mark.parametrize(("facts", "code"), PRECONDITIONS, ids=[f"{f} {c}" for f, c in PRECONDITIONS])
def test_each_precondition_speaks_against_every_proof(facts, code):
    late = replace(OLD, boot_ns=WRITTEN + MARGIN_NS, engine_ns=WRITTEN + MARGIN_NS)
    everything = {
        "scans": (CLEAN, CLEAN),
        "quiescence": QUIET,
        "witnesses": (*REBOOTED, *REPLACED),
        "times": late,
        "accept_wall_clock": True,
    }
    assert set(decide(evidence(**everything)).codes) == set(PROOFS)
    assert_refused(decide(evidence(**(everything | facts))), code)


def test_two_broken_preconditions_are_both_named():
    for first, second in itertools.combinations(PRECONDITIONS, 2):
        if first[0].keys() & second[0].keys():
            continue
        facts = first[0] | second[0]
        # An engine that cannot be seen has no data root to speak of.
        hidden = {"engine_storage_new"} if {"engine_codes", "endpoint_code"} & facts.keys() else set()
        codes = set(decide(quiescent(**facts)).codes)
        unheard = {"fence_failed"} if facts.get("fence") == Fence() else set()
        assert {first[1], second[1]} - hidden - unheard <= codes, (first, second)


def test_a_fence_is_made_only_where_it_could_help():
    assert might_retire(quiescent(fence=Fence(), quiescence=None))
    assert might_retire(evidence(fence=Fence(), witnesses=REBOOTED))
    assert not might_retire(evidence(fence=Fence()))
    assert not might_retire(quiescent(fence=Fence(), scans=(FOUND,)))
    assert not might_retire(quiescent(fence=Fence(), absence="name_foreign"))


def test_a_plan_is_promising_where_only_the_consent_is_missing():
    assert might_retire(quiescent(fence=Fence(), quiescence=None, confirmed=False, lock="not_taken"))
    assert not might_retire(quiescent(confirmed=False, lock="supervisor_running"))
    assert not might_retire(quiescent(confirmed=False, receipt_ready=False))


def test_every_code_of_the_table_is_registered_and_only_proofs_and_notes_are_mere_information():
    for facts, _ in PRECONDITIONS:
        for found in decide(quiescent(**facts)).findings:
            assert found.code in CODES
            assert found.severity is not Severity.INFO, found.code


def test_a_listener_of_the_starter_s_that_was_witnessed_may_still_hold_the_request():
    """Even if the engine of today owns its own: the starter's goes on to hold what was queued there."""
    decision = decide(evidence(scans=(CLEAN, CLEAN), witnesses=(witness(replaced=True, own_listener=False),)))
    assert not decision.retire
    assert {"engine_socket_activated", "flush_missing"} <= set(decision.codes)


def test_a_replaced_engine_with_another_data_root_flushes_nothing():
    elsewhere = (witness(replaced=True, same_storage=False),)
    decision = decide(evidence(scans=(CLEAN, CLEAN), witnesses=elsewhere))
    assert not decision.retire
    assert "flush_missing" in decision.codes


@given(
    st.sampled_from(["creating", "uncertain"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.lists(st.sampled_from([CLEAN, BLIND, FOUND]), max_size=2),
    st.sampled_from([None, QUIET, FOREIGN, UNREADABLE]),
    st.lists(
        st.builds(
            witness,
            unchanged=st.booleans(),
            rebooted=st.booleans(),
            replaced=st.booleans(),
            anchored=st.booleans(),
            own_listener=st.booleans(),
            same_storage=st.booleans(),
        ),
        max_size=2,
    ),
    st.sampled_from(["plain", "wrapper", "reviewed"]),
)
def test_nothing_retires_without_an_anchor_and_a_flush(
    phase, activated, accepted, late, scans, census, witnesses, client
):
    late_ns = WRITTEN + MARGIN_NS if late else WRITTEN
    facts = {
        "activated": activated,
        "accept_wall_clock": accepted,
        "times": replace(OLD, boot_ns=late_ns, engine_ns=late_ns),
        "scans": tuple(scans),
        "quiescence": census,
        "witnesses": tuple(witnesses),
        "client": Client(kind=client, path="/usr/bin/docker"),
    }
    decision = decide(evidence(phase, **facts))
    kept = [one for one in witnesses if one.unchanged]
    scanned = bool(scans) and all(one.clean for one in scans)
    rebooted = any(one.rebooted and one.same_storage for one in kept)
    clocked = phase == "uncertain" and accepted and late
    anchored = scanned or rebooted or clocked
    restarted = any(one.replaced and one.own_listener and one.same_storage for one in kept)
    flushed = rebooted or clocked or census == QUIET or (restarted and not activated)
    if decision.retire:
        assert anchored
        assert flushed
        assert FOUND not in scans
        assert client == "plain" or (client == "reviewed" and rebooted)
    else:
        assert decision.findings
