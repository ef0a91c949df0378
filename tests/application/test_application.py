"""What an application may be: from Python and from a file, its chains, its arrivals, and what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from ov_autoplace import Application
from ov_autoplace.application.workload import Chain, Demand
from ov_autoplace.errors import OptionError

CAMERA: dict[str, Any] = {
    "version": 1,
    "models": {
        "det": {"path": "det.xml", "devices": ["GPU", "CPU"]},
        "cls": {"path": "sub/cls.xml", "shapes": {"x": [1, 3]}, "properties": {"NUM_STREAMS": 1}},
        "extra": {"path": "extra.xml"},
    },
    "load": [
        {"start": "det", "rate": 30, "arrivals": "poisson", "deadline_ms": 33, "percentile": 95},
        {"start": "extra", "in_flight": 2, "priority": 3},
    ],
    "chains": [{"from": "det", "to": "cls", "times": 2.5}],
}


def relu() -> ov.Model:
    x = ops.parameter([1, 3], np.float32, name="x")
    return ov.Model([ops.result(ops.relu(x))], [x])


def read(folder: Path, content: Any) -> Application:
    path = folder / "cameras.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return Application.load_file(path)


def test_a_file_says_it_all(tmp_path: Path) -> None:
    camera = read(tmp_path, CAMERA)
    assert list(camera.members) == ["det", "cls", "extra"]
    det, cls, _ = camera.members.values()
    assert (det.name, det.source, det.devices) == ("det", tmp_path / "det.xml", ("GPU", "CPU"))
    assert (cls.source, cls.devices) == (tmp_path / "sub" / "cls.xml", None)
    assert (cls.shapes, cls.properties) == ({"x": (1, 3)}, {"NUM_STREAMS": 1})
    assert camera.chains == (Chain("det", "cls", 2.5),)
    assert camera.load == (
        Demand("det", 30.0, "poisson", 1, 0.033, 95.0, 1.0),
        Demand("extra", 0.0, "periodic", 2, None, 99.0, 3.0),
    )
    assert camera.is_open
    assert [demand.is_open for demand in camera.load] == [True, False]


def test_python_says_the_same_with_models_and_tuples(tmp_path: Path) -> None:
    model = relu()
    given: dict[str, Any] = {
        "det": {"path": str(tmp_path / "det.xml"), "devices": ("GPU", "CPU")},
        "cls": {"path": model, "shapes": {"x": (1, 3)}, "properties": {"NUM_STREAMS": 1}},
        "extra": tmp_path / "extra.xml",
    }
    own, read_one = (
        Application(given, tuple(CAMERA["load"]), tuple(CAMERA["chains"])),
        read(tmp_path, CAMERA),
    )
    assert (own.load, own.chains) == (read_one.load, read_one.chains)
    assert own.members["cls"].source is model
    assert own.members["det"].devices == ("GPU", "CPU")
    assert own.members["cls"].shapes == {"x": (1, 3)}


def test_without_a_load_one_request_is_in_flight_at_every_model_that_no_chain_leads_to() -> None:
    plain = Application({"a": "a.xml", "b": "b.xml", "c": "c.xml"}, chains=[{"from": "a", "to": "b"}])
    assert plain.load == (Demand("a"), Demand("c"))
    assert not plain.is_open


def test_files_alone_are_called_by_their_names() -> None:
    given = Application.of_files(["a/net.xml", "b/net.xml", Path("net.onnx"), "other.xml"])
    assert {name: str(member.source) for name, member in given.members.items()} == {
        "net": "a/net.xml",
        "net-2": "b/net.xml",
        "net-3": "net.onnx",
        "other": "other.xml",
    }
    assert [demand.start for demand in given.load] == list(given.members)


def paths_between(chains: Sequence[tuple[str, str, float]], start: str, end: str) -> float:
    """Inferences of a model per request, by every single way to it."""
    if start == end:
        return 1.0
    return sum(times * paths_between(chains, to, end) for source, to, times in chains if source == start)


@pytest.mark.parametrize("seed", range(5))
def test_models_are_reached_by_every_way_there_is(seed: int) -> None:
    random = np.random.default_rng(seed)
    names = [f"m{i}" for i in random.permutation(7)]
    chains = [
        (a, b, float(random.integers(1, 9)) / 4)
        for i, a in enumerate(names)
        for b in names[i + 1 :]
        if random.random() < 0.5
    ]
    random.shuffle(chains)
    models = {f"m{i}": "m.xml" for i in range(7)}
    given = Application(models, chains=[{"from": a, "to": b, "times": t} for a, b, t in chains])
    for start in models:
        expected = {end: paths_between(chains, start, end) for end in models}
        assert given.reached(start) == pytest.approx({k: v for k, v in expected.items() if v})


@pytest.mark.parametrize(
    ("rate", "factor", "seconds", "expected"),
    [
        (10.0, 1.0, 0.5, [0.0, 0.1, 0.2, 0.3, 0.4]),
        (10.0, 2.0, 0.2, [0.0, 0.05, 0.1, 0.15]),
        (4.0, 0.5, 1.0, [0.0, 0.5]),
        (0.01, 1.0, 1.0, [0.0]),
    ],
)
def test_periodic_requests_come_evenly_from_the_start_on(
    rate: float, factor: float, seconds: float, expected: list[float]
) -> None:
    begins = Demand("a", rate).begins(seconds, factor, 0)
    assert begins.tolist() == pytest.approx(expected)


def test_requests_at_random_have_a_seed_and_the_rate_that_was_asked_for() -> None:
    demand = Demand("a", 500.0, "poisson")
    begins = demand.begins(20.0, 2.0, 3)
    assert begins.tolist() == demand.begins(20.0, 2.0, 3).tolist()
    assert begins.tolist() != demand.begins(20.0, 2.0, 4).tolist()
    assert (np.diff(begins) >= 0).all()
    assert begins[0] > 0
    assert begins[-1] < 20.0
    # 20,000 are expected; their standard deviation in a Poisson process is the square root of that. Gaps are
    # exponential, so that their spread is their mean.
    gaps = np.diff(begins)
    assert abs(len(begins) - 20_000) < 6 * math.sqrt(20_000)
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("arrivals", ["periodic", "poisson"])
@pytest.mark.parametrize("seed", range(4))
def test_there_is_always_a_request_and_none_after_the_end(arrivals: str, seed: int) -> None:
    begins = Demand("a", 0.01, arrivals).begins(0.5, 1.0, seed)
    assert begins.tolist() == [0.0]


def load(**fields: Any) -> dict[str, Any]:
    return {"load": [{"start": "det", **fields}, {"start": "extra"}]}


def chains(*fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"chains": [*CAMERA["chains"], *fields]}


def det(**fields: Any) -> dict[str, Any]:
    return {"models": {**CAMERA["models"], "det": {**CAMERA["models"]["det"], **fields}}}


WRONG: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    # What is wrong -> the change to the file, and what the sentence says.
    "no path": (det(path=None), ("'det'", "'path'")),
    "path of another kind": (det(path=3), ("'det'", "path")),
    "devices of another kind": (det(devices="CPU"), ("'det'", "'devices'")),
    "a device of another kind": (det(devices=[1]), ("'det'", "'devices'")),
    "shapes of another kind": (det(shapes=[1]), ("'det'", "'shapes'")),
    "a shape of another kind": (det(shapes={"x": [1.5]}), ("'det'", "'x'")),
    "a negative dimension": (det(shapes={"x": [-1]}), ("'det'", "'x'")),
    "properties of another kind": (det(properties=[]), ("'det'", "'properties'")),
    "a key of a model that is misspelt": (det(shape={}), ("'det'", "'shape'", "'shapes'")),
    "a model of another kind": ({"models": {**CAMERA["models"], "det": 3}}, ("'det'",)),
    "no name": ({"models": {**CAMERA["models"], "": {"path": "a.xml"}}}, ("name",)),
    "an unprintable name": ({"models": {**CAMERA["models"], "a\n": {"path": "a.xml"}}}, ("name",)),
    "models as a list": ({"models": ["a.xml"]}, ("'models'",)),
    "load of another kind": ({"load": {"start": "det"}}, ("'load'",)),
    "one load of another kind": ({"load": ["det"]}, ("load 0",)),
    "a key of a load that is misspelt": (load(deadline=3), ("load 0", "'deadline'", "'deadline_ms'")),
    "no start": ({"load": [{"rate": 3}, {"start": "extra"}]}, ("load 0", "'start'")),
    "a start of another kind": ({"load": [{"start": 3}, {"start": "extra"}]}, ("load 0", "'start'")),
    "an unknown start": (
        {"load": [{"start": "dett"}, {"start": "extra"}]},
        ("load 0", "'start'", "'dett'", "'det'"),
    ),
    "a rate and in flight": (load(rate=3, in_flight=1), ("load 0", "'rate'", "'in_flight'")),
    "arrivals without a rate": (load(arrivals="poisson"), ("load 0", "'arrivals'", "'rate'")),
    "unknown arrivals": (load(rate=3, arrivals="poison"), ("load 0", "'arrivals'", "poisson")),
    "no request in flight": (load(in_flight=0), ("load 0", "'in_flight'", "0")),
    "half a request in flight": (load(in_flight=1.5), ("load 0", "'in_flight'", "1.5")),
    "too many in flight": (load(in_flight=1001), ("load 0", "'in_flight'", "1001")),
    "too many in flight together": (
        {"load": [{"start": "det", "in_flight": 600}, {"start": "extra", "in_flight": 401}]},
        ("'in_flight'", "1001"),
    ),
    "two loads that start alike": (
        {"load": [{"start": "det"}, {"start": "extra"}, {"start": "det"}]},
        ("'det'", "load"),
    ),
    "a percentile above 100": (load(percentile=101), ("load 0", "'percentile'", "101")),
    "an unreached model": ({"load": [{"start": "det"}]}, ("'extra'", "load")),
    "an unreached end of a chain": ({"chains": []}, ("'cls'", "chain")),
    "chains of another kind": ({"chains": "det"}, ("'chains'",)),
    "a chain of another kind": ({"chains": [["det", "cls"]]}, ("chain 0",)),
    "a key of a chain that is misspelt": (
        chains({"from": "det", "too": "extra"}),
        ("chain 1", "'too'", "'to'"),
    ),
    "a chain from nowhere": (chains({"to": "extra"}), ("chain 1", "'from'")),
    "a chain to an unknown model": (
        chains({"from": "det", "to": "extre"}),
        ("chain 1", "'to'", "'extre'", "'extra'"),
    ),
    "a chain to itself": (chains({"from": "cls", "to": "cls"}), ("'cls'", "back")),
    "a cycle": (chains({"from": "cls", "to": "det"}), ("back",)),
    "a chain twice": (chains(CAMERA["chains"][0]), ("'det'", "'cls'", "two chains")),
    "too many inferences": (
        {
            "chains": [
                {"from": "det", "to": "cls", "times": 1000},
                {"from": "cls", "to": "extra", "times": 1000},
            ]
        },
        ("'det'", "1e+06", "'times'"),
    ),
    "another version": ({"version": 2}, ("'version'", "2")),
    "a version of another kind": ({"version": True}, ("'version'",)),
    "no version": ({"version": None}, ("'version'",)),
    "a key that is misspelt": ({"loads": []}, ("'loads'", "'load'")),
    "no model": ({"models": {}, "load": [], "chains": []}, ("model",)),
    **{
        f"{key} of {value!r}": (load(**{"rate": 3, key: value}), ("load 0", f"'{key}'"))
        for key in ("rate", "deadline_ms", "percentile", "priority")
        for value in (0, -1, math.nan, math.inf, 10**400, 1e300, "3", True, [3])
    },
    **{
        f"times of {value!r}": ({"chains": [{**CAMERA["chains"][0], "times": value}]}, ("chain 0", "'times'"))
        for value in (0, -0.5, math.nan, 1001, "3", False)
    },
}


def assert_sentence(refusal: BaseException, words: Sequence[str]) -> None:
    assert "\n" not in str(refusal)
    assert len(str(refusal)) < 400
    for word in words:
        assert word in str(refusal)


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_in_a_file_is_one_sentence_with_the_key(what: str, tmp_path: Path) -> None:
    change, words = WRONG[what]
    with pytest.raises(OptionError) as refusal:
        read(tmp_path, {**CAMERA, **change})
    assert_sentence(refusal.value, ("cameras.json", *words))


@pytest.mark.parametrize("what", [what for what in WRONG if "version" not in what and "key that" not in what])
def test_what_is_wrong_in_python_is_one_sentence_with_the_key(what: str) -> None:
    change, words = WRONG[what]
    given = {key: value for key, value in {**CAMERA, **change}.items() if key != "version"}
    with pytest.raises(OptionError) as refusal:
        Application(**given)
    assert_sentence(refusal.value, words)


@pytest.mark.parametrize(
    "arguments",
    [
        (None,),
        ("a.xml",),
        (["a.xml", "b.xml"],),
        ({1: "a.xml"},),
        ({"a": None},),
        ({"a": object()},),
        ({"a": {1: "a.xml"}},),
        ({"a": "a.xml"}, 3),
        ({"a": "a.xml"}, "a"),
        ({"a": "a.xml"}, [{1: 2}]),
        ({"a": "a.xml"}, [], 3),
        ({"a": "a.xml"}, [], [None]),
        ({f"m{i}": "a.xml" for i in range(101)},),
    ],
)
def test_what_no_file_can_hold_is_one_sentence_too(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(OptionError) as refusal:
        Application(*arguments)
    assert_sentence(refusal.value, ())


def test_a_cycle_is_named_by_a_model_on_it_and_not_by_one_behind_it() -> None:
    links = [("z1", "z2"), ("z2", "z1"), ("z1", "a"), ("b", "z2")]
    with pytest.raises(OptionError, match=r"from 'z[12]' back to itself"):
        Application(
            dict.fromkeys(("a", "b", "z1", "z2"), "m.xml"),
            chains=[{"from": source, "to": target} for source, target in links],
        )


def test_a_file_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    for content in ("", "{", "[]", "3", '{"version": 1}'):
        with pytest.raises(OptionError) as refusal:
            read(tmp_path, content)
        assert_sentence(refusal.value, ("cameras.json",))
    with pytest.raises(OptionError, match=r"nowhere\.json"):
        Application.load_file(tmp_path / "nowhere.json")
