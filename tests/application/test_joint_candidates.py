"""Who is proposed for an application, what is predicted of them, and what people would have set by hand."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from played import Alone, application, played, setting

from ov_autoplace.application.bounds import capacity_bound
from ov_autoplace.application.candidates import Joint, fairness, label_of, predict, proposals, rivals
from ov_autoplace.application.place import field_of
from ov_autoplace.application.workload import Application
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.joint import JointPlan
from ov_autoplace.plan.plan import PoolPlan, SplitPlan, WholePlan

ONE = WholePlan("CPU", Width(1, in_caller=True))
TWO = WholePlan("CPU", Width(2))
MACHINE = ("a machine",)


@pytest.fixture(params=[2, 8])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    count: int = request.param
    set_cores(monkeypatch, count)
    return count


def set_cores(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    for name, value in {"all": count, "usable": count, "of_kind": {}, "quota": None}.items():
        monkeypatch.setattr(Cores, name, value)


def joint_plan(joint: Joint) -> JointPlan:
    assert isinstance(joint.plan, JointPlan)
    return joint.plan


def labels(joint: Joint) -> list[str]:
    """How each model runs, in the models' order."""
    return [label_of(setting.plan, with_device=False) for setting in joint.settings]


def test_people_set_one_thing_for_all_by_hand_and_the_default_is_the_first(cores: int) -> None:
    alone: Alone = {"no pinning": (0.5e-3, 1.0)}
    found = rivals(played(application(), alone), cores, MACHINE)
    by_name = {joint.name: joint for joint in found}
    assert {name: labels(joint) for name, joint in by_name.items()} == {
        "OpenVINO's default": ["default"] * 2,
        "THROUGHPUT": ["THROUGHPUT"] * 2,
        "no pinning": ["no pinning"] * 2,
        "one thread each": ["1 thread"] * 2,
        "equal reserved cores": [{2: "1 thread", 8: "4 threads"}[cores]] * 2,
        "one after the other": ["default"] * 2,
    }
    assert found[0].name == "OpenVINO's default"
    assert all(joint.is_rival for joint in found)
    assert all(joint_plan(joint).machine == MACHINE for joint in found)
    assert [joint.name for joint in found if joint.runs_in_turn] == ["one after the other"]
    assert [joint.name for joint in found if joint.is_reserved] == ["equal reserved cores"]


def test_what_is_best_for_each_alone_is_a_rival_where_nobody_else_is_that(cores: int) -> None:
    models = played(application(), {})
    for model, fast in zip(models, ("THROUGHPUT", "1 thread"), strict=True):
        for own in model.settings:
            if label_of(own.plan, with_device=False) == fast:
                own.remember(Load.APPLICATION, np.full(3, 0.1e-3))
    found = {joint.name: labels(joint) for joint in rivals(models, cores)}
    assert found["best of each alone"] == ["THROUGHPUT", "1 thread"]
    assert found["best hint of each alone"] == ["THROUGHPUT", "default"]


def test_more_models_than_cores_have_none_of_their_own(cores: int) -> None:
    names = [f"m{i}" for i in range(cores + 1)]
    found = {joint.name for joint in rivals(played(application(names), {}), cores)}
    assert "one thread each" in found
    assert "equal reserved cores" not in found


def test_models_in_processes_of_their_own_have_processors_of_their_own(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Cores(frozenset(range(cores)))
    monkeypatch.setattr(Cores, "of_this_process", lambda: here)

    def field(count: int) -> list[Joint]:
        given = application([f"m{i}" for i in range(count)])
        bench: Any = SimpleNamespace(models=played(given, {}), application=given)
        return field_of(bench, MACHINE, processes=True)

    found = field(2)
    assert found
    for joint in found:
        divided = [processor for part in joint_plan(joint).parts for processor in part.cores]
        assert all(part.cores for part in joint_plan(joint).parts)
        assert len(divided) == len(set(divided))
        # Cores that one process reserves keep no other process away.
        assert not joint.is_reserved
    with pytest.raises(PlacementError, match=f"{cores + 1} models"):
        field(cores + 1)


@pytest.mark.parametrize("in_flight", [1, 2, 3])
def test_of_several_requests_in_flight_each_has_one_thread(
    in_flight: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_cores(monkeypatch, 8)
    given = application(load=[{"start": "a", "in_flight": in_flight}, {"start": "b"}])
    found = {joint.name: joint for joint in rivals(played(given, {}), 8)}
    first, second = found["one thread each"].settings
    assert (len(first.plan.models), len(second.plan.models)) == (in_flight, 1)
    assert {model.width for model in (*first.plan.models, *second.plan.models)} == {ONE.width}


def test_reserved_cores_are_said_with_openvinos_properties_once_per_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_cores(monkeypatch, 8)
    given = application(load=[{"start": "a", "in_flight": 2}, {"start": "b"}])
    (found,) = (joint for joint in rivals(played(given, {}), 8) if joint.is_reserved)
    plans = {part.name: part.plan for part in joint_plan(found).parts}
    for name, copies in {"a": 2, "b": 1}.items():
        one = plans[name]
        assert isinstance(one, WholePlan)
        assert (one.device, one.width) == ("CPU", None)
        assert one.properties == {
            "INFERENCE_NUM_THREADS": "4",
            "NUM_STREAMS": str(copies),
            "ENABLE_CPU_RESERVATION": "YES",
            "ENABLE_CPU_PINNING": "YES",
        }
        assert label_of(one, with_device=False) == "4 reserved cores"


def test_every_combination_is_proposed_once(cores: int) -> None:
    models = played(application(), {})
    found = list(proposals(models, cores, MACHINE))
    shared = [joint for joint in found if not joint.is_reserved]
    choices = [[label_of(s.plan, with_device=False) for s in model.settings] for model in models]
    assert [tuple(labels(joint)) for joint in shared] == list(itertools.product(*choices))
    threads = {"1 thread": 1, "2 threads": 2, "4 threads": 4}
    reserved = [tuple(labels(joint)) for joint in found if joint.is_reserved]
    assert reserved == [
        pair
        for pair in itertools.product(*choices)
        if all(label in threads for label in pair)
        and max(threads[label] for label in pair) > 1
        and sum(threads[label] for label in pair) <= cores
    ]
    assert bool(reserved) == (cores == 8)
    assert len({joint.plan for joint in found}) == len(found)
    assert len({joint.name for joint in found}) == len(found)
    assert not any(joint.is_rival for joint in found)


@pytest.mark.parametrize(
    ("seconds", "tried"),
    [
        ({1: 1.0, 2: 0.6, 4: 0.4}, [1, 2, 4, 8]),
        ({1: 1.0, 2: 1.05, 4: 1.2}, [1, 2, 4]),
        ({1: 1.0, 2: 1.2, 4: 0.4}, [1, 2]),
        ({1: 1.0, 2: math.inf}, [1, 2]),
    ],
)
@pytest.mark.parametrize("share", [1, 8])
def test_a_model_that_got_slower_on_more_threads_is_not_tried_on_still_more(
    seconds: dict[int, float], tried: list[int], share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_cores(monkeypatch, 16)
    alone: Alone = {f"{n} thread{'s' * (n > 1)}": (taken, 1.0) for n, taken in seconds.items()}
    (model,) = played(application(("a",)), alone)
    entered: list[Candidate] = []
    for own in model.settings:
        if model.may_be_faster(share, own, entered):
            entered.append(own)
    widths = [own.plan.models[0].width for own in entered]
    assert widths.count(None) == 3  # the default, THROUGHPUT, no pinning
    assert [width.threads for width in widths if width] == sorted({*tried, share})


def test_who_reserves_most_cores_is_compiled_first(monkeypatch: pytest.MonkeyPatch) -> None:
    set_cores(monkeypatch, 8)
    names = ("a", "b", "c")
    models = played(application(names), {})
    for joint in proposals(models, 8):
        parts = joint_plan(joint).parts
        if joint.is_reserved:
            widths = [int(part.plan.properties["INFERENCE_NUM_THREADS"]) for part in parts]  # type: ignore[attr-defined]
            assert widths == sorted(widths, reverse=True)
            by_name = dict(zip([part.name for part in parts], widths, strict=True))
            assert [f"{by_name[n]} thread{'s' * (by_name[n] > 1)}" for n in names] == labels(joint)
        else:
            assert [part.name for part in parts] == list(names)


@pytest.mark.parametrize("count", [5, 12])
def test_of_many_models_the_most_promising_ways_are_combined(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_cores(monkeypatch, 8)
    alone: Alone = {"THROUGHPUT": (9e-3, 8.0), "1 thread": (1e-3, 0.5)}
    found = [
        joint
        for joint in proposals(played(application([f"m{i}" for i in range(count)]), alone), 8)
        if not joint.is_reserved
    ]
    assert 1 <= len(found) <= 4096
    assert any(labels(joint) == ["1 thread"] * count for joint in found)
    assert not any(labels(joint) == ["THROUGHPUT"] * count for joint in found)


def test_parts_say_what_the_application_asks_for(cores: int) -> None:
    given = Application(
        {"a": {"path": "a.xml", "properties": {"PERF_COUNT": True}}, "b": "b.xml", "c": "c.xml"},
        load=[{"start": "a", "in_flight": 3}, {"start": "b"}, {"start": "c", "rate": 10}],
        chains=[{"from": "a", "to": "b"}],
    )
    default, *_ = rivals(played(given, {}), cores)
    parts = {part.name: part for part in joint_plan(default).parts}
    # Requests that come along a chain are begun by nobody at the model to which it leads.
    assert [parts[name].callers for name in "ab"] == [3, 1]
    assert parts["c"].callers == cores
    assert parts["a"].digest == "hash of a"
    assert parts["a"].source.endswith("/a.xml")
    assert dict(parts["a"].properties) == {"PERF_COUNT": "YES"}


def joint_of(models: Any, *settings: Any, in_turn: bool = False) -> Joint:
    """A candidate of which nothing counts but its settings."""
    plan = JointPlan("by hand", (), in_turn)
    return Joint("by hand", plan, settings=tuple(settings))


def test_what_wants_more_cores_than_there_are_takes_longer_by_that() -> None:
    """Two cores; 1.5 + 1 of them are wanted: everybody takes 1.25 times as long."""
    given = application()
    models = played(given, {})
    joint = joint_of(models, setting(TWO, 4e-3, 1.5), setting(ONE, 1e-3, 1.0))
    predict(joint, models, given, 2)
    assert joint.expected == pytest.approx((5e-3, 1.25e-3))
    assert joint.rates == pytest.approx({"a": 200, "b": 800})
    assert joint.predicted_seconds == pytest.approx(1 / 400)
    predict(joint, models, given, 8)
    assert joint.expected == pytest.approx((4e-3, 1e-3))


def test_in_turn_each_waits_for_all_others() -> None:
    given = application()
    models = played(given, {})
    joint = joint_of(models, setting(TWO, 4e-3, 2.0), setting(ONE, 1e-3, 1.0), in_turn=True)
    predict(joint, models, given, 2)
    assert joint.rates == pytest.approx({"a": 200, "b": 200})
    assert joint.predicted_seconds == pytest.approx(5e-3)


def test_a_chain_takes_what_all_its_inferences_take() -> None:
    given = application(chains=[{"from": "a", "to": "b", "times": 2.5}])
    models = played(given, {})
    joint = joint_of(models, setting(ONE, 4e-3, 1.0), setting(ONE, 1e-3, 1.0))
    predict(joint, models, given, 2)
    assert joint.rates == pytest.approx({"a": 1 / 6.5e-3})


def test_requests_of_several_callers_take_longer_and_come_no_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a model does alone was measured with all its callers: 500 requests a second of both together."""
    set_cores(monkeypatch, 8)
    given = application(load=[{"start": "a", "in_flight": 2}, {"start": "b"}])
    models = played(given, {})
    copies = PoolPlan("2 x CPU", ONE, (ONE, ONE), 2)
    joint = joint_of(models, setting(copies, 2e-3, 2.0), setting(ONE, 1e-3, 1.0))
    predict(joint, models, given, 8)
    assert joint.expected == pytest.approx((4e-3, 1e-3))
    assert joint.rates == pytest.approx({"a": 500, "b": 1000})


def test_a_device_that_two_want_is_shared_beside_the_cores() -> None:
    """Both on one GPU halve its time; the one that keeps the CPU busy besides is slowed down by the worse."""
    given = application(("a", "b", "c"))
    models = played(given, {})
    gpu, mix = WholePlan("GPU"), SplitPlan.of({"x": "GPU", "y": "CPU"})
    joint = joint_of(models, setting(gpu, 1e-3, 0.0), setting(mix, 1e-3, 1.0), setting(TWO, 1e-3, 2.0))
    predict(joint, models, given, 1)  # 3 cores are wanted
    assert joint.expected == pytest.approx((2e-3, 3e-3, 3e-3))
    predict(joint, models, given, 8)
    assert joint.expected == pytest.approx((2e-3, 2e-3, 1e-3))


@pytest.mark.parametrize(("cores", "headroom"), [(1, 1 / 0.6), (4, 4 / 0.6)])
def test_rates_have_headroom_until_the_cores_are_busy_all_the_time(cores: int, headroom: float) -> None:
    """20/s of 10 ms on one core, each with two of 5 ms on two cores: 0.2 + 0.4 cores are busy."""
    given = application(load=[{"start": "a", "rate": 20}], chains=[{"from": "a", "to": "b", "times": 2}])
    models = played(given, {})
    joint = joint_of(models, setting(ONE, 10e-3, 1.0), setting(TWO, 5e-3, 2.0))
    predict(joint, models, given, cores)
    assert joint.likely_headroom == pytest.approx(headroom)
    assert joint.predicted_seconds == pytest.approx(1 / headroom)


@pytest.mark.parametrize(
    ("priorities", "rates", "expected"),
    [
        ((1, 1), (100, 100), 1 / 100),
        ((1, 1), (100, 400), 1 / 200),
        ((3, 1), (16, 81), 1 / 24),  # (16^3 81)^(1/4) = 8 x 3
        ((1, 3), (16, 81), 1 / 54),  # (16 81^3)^(1/4) = 2 x 27
    ],
)
def test_what_counts_is_the_weighted_geometric_mean_of_rates(
    priorities: tuple[int, int], rates: tuple[float, float], expected: float
) -> None:
    first, second = priorities
    given = application(load=[{"start": "a", "priority": first}, {"start": "b", "priority": second}])
    assert fairness(given, dict(zip("ab", rates, strict=True))) == pytest.approx(expected)


def test_a_load_that_finishes_nothing_is_as_bad_as_can_be_and_no_error() -> None:
    given = application()
    nothing = fairness(given, {"a": 0.0, "b": 100.0})
    assert math.isfinite(nothing)
    assert nothing > 1e3 * fairness(given, {"a": 1.0, "b": 100.0})


@pytest.mark.parametrize(
    ("cores", "priorities", "expected"),
    [
        (1, (1, 1), 50.0),  # half a core each
        (2, (1, 1), 100.0),  # as fast as alone
        (8, (1, 1), 100.0),
        (1, (3, 1), (75**3 * 25) ** 0.25),
    ],
)
def test_no_plan_can_do_more_than_the_cores_allow(
    cores: int, priorities: tuple[int, int], expected: float
) -> None:
    first, second = priorities
    given = application(load=[{"start": "a", "priority": first}, {"start": "b", "priority": second}])
    models = played(given, {})
    for model in models:
        model.settings = [setting(ONE, 10e-3, 1.0), setting(TWO, 20e-3, 2.0)]
    assert capacity_bound(models, given, cores) == pytest.approx(expected, rel=1e-6)


def test_nobody_is_predicted_to_do_more_than_that(cores: int) -> None:
    random = np.random.default_rng(5)
    given = application(("a", "b", "c"), chains=[{"from": "a", "to": "c", "times": 1.5}])
    models = played(given, {})
    for model in models:
        model.settings = [
            setting(own.plan, float(random.uniform(1e-3, 1e-2)), float(random.uniform(0.5, cores)))
            for own in model.settings
        ]
    bound = capacity_bound(models, given, cores)
    predicted = []
    for joint in proposals(models, cores):
        predict(joint, models, given, cores)
        predicted.append(1 / joint.expected_seconds)
    assert max(predicted) <= bound * (1 + 1e-6)


def test_rates_have_no_headroom_beyond_the_cores() -> None:
    given = application(load=[{"start": "a", "rate": 20}], chains=[{"from": "a", "to": "b", "times": 2}])
    models = played(given, {})
    for model in models:
        model.settings = [setting(ONE, 10e-3, 1.0), setting(TWO, 8e-3, 2.0)]
    # 20/s of three inferences of 10 ms on one core.
    assert capacity_bound(models, given, 3) == pytest.approx(3 / 0.6)
