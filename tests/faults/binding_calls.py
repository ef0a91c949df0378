"""Calls everything that the C++ core offers with whatever hypothesis makes up.

    python binding_calls.py SEED [TOPIC ...]

A process of its own, because what it looks for ends the process. Any answer and any ordinary Python error is
fine; a signal, a hang and an untranslated C++ exception are not.
"""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from wild_values import arrays, csr, drawn_links, drawn_seconds, numbers, oddities, reals

from ov_autoplace import _core
from ov_autoplace._base.native import native_libraries

ORDINARY = (TypeError, ValueError, RuntimeError, OverflowError, MemoryError)
MEMORY = 6 << 30
EXAMPLES = {
    "peak_bytes": 15,  # a number of moments that memory just holds takes seconds
    # Few examples make an object of their classes.
    "partition": 120,
    "schedule": 120,
    "overlap": 120,
}

_made: set[object] = set()


def attempt(call: Callable[..., object], *arguments: object, **named: object) -> object:
    try:
        answer = call(*arguments, **named)
    except ORDINARY:
        return None
    _made.add(call)
    return answer


@given(arrays(), arrays(), arrays(), arrays(), numbers, st.data())
def graph_tools(a: object, b: object, c: object, d: object, n: object, data: st.DataObject) -> None:
    attempt(_core.connected_labels, data.draw(st.one_of(numbers, oddities)), a)
    attempt(_core.merge_cycles, a, b)
    attempt(_core.minimum_cut, n, 0, 1, a, b, c, d)
    # The same with sizes that fit.
    nodes = data.draw(st.integers(0, 6))
    pairs = data.draw(st.lists(st.tuples(*[st.integers(-1, nodes)] * 2), max_size=8))
    edges = np.array(pairs, "i4").reshape(-1, 2)
    attempt(_core.connected_labels, nodes, edges)
    attempt(_core.merge_cycles, np.arange(nodes, dtype="i4") // 2, edges)
    tail, head = np.ascontiguousarray(edges.T)
    flows = data.draw(st.lists(st.integers(-1, 2**63 - 1), min_size=len(tail), max_size=len(tail)))
    forward = np.array(flows, "i8")
    ends = data.draw(st.tuples(st.integers(-1, nodes), st.integers(-1, nodes)))
    attempt(_core.minimum_cut, nodes, *ends, tail, head, forward, forward[::-1].copy())


@given(st.lists(arrays(), min_size=6, max_size=6), st.integers(0, 6), st.integers(0, 3), st.data())
def peak_bytes(wild: list[object], nodes: int, devices: int, data: st.DataObject) -> None:
    moments = data.draw(numbers)
    attempt(_core.peak_bytes, moments, *wild, devices)
    first, offsets, holders = data.draw(csr(nodes))
    size = np.array(data.draw(st.lists(reals, min_size=len(first), max_size=len(first))), "f8")
    rows = np.zeros((data.draw(st.integers(0, 3)), nodes), "i4") + data.draw(st.integers(-1, devices))
    arguments: list[object] = [nodes, size, first, first[::-1].copy(), offsets, holders, rows, devices]
    if data.draw(st.booleans()):
        arguments[data.draw(st.sampled_from([0, 7]))] = moments
    if data.draw(st.booleans()):
        arguments[data.draw(st.integers(1, 6))] = wild[0]
    attempt(_core.peak_bytes, *arguments)


@given(st.lists(arrays(), min_size=5, max_size=5), st.integers(0, 8), st.data())
def partition(wild: list[object], nodes: int, data: st.DataObject) -> None:
    attempt(_core.PartitionGraph, *wild)
    kinds = np.array(data.draw(st.lists(st.integers(0, 5), min_size=nodes, max_size=nodes)), "u1")
    arguments: list[object] = [kinds, *data.draw(csr(nodes)), data.draw(st.integers(-1, 2))]
    if data.draw(st.booleans()):
        arguments[data.draw(st.integers(0, 4))] = wild[0]
    graph = attempt(_core.PartitionGraph, *arguments)
    if isinstance(graph, _core.PartitionGraph):
        attempt(graph.partition, data.draw(arrays()))
        attempt(graph.partition, np.array(data.draw(st.lists(numbers, min_size=nodes, max_size=nodes)), "O"))
        attempt(graph.partition, (np.arange(nodes) % 2 * 2**30).astype("i4"))
        attempt(graph.__init__, *arguments)  # once is enough
    attempt(_core.PartitionGraph.__new__(_core.PartitionGraph).partition, np.zeros(nodes, "i4"))


@given(st.lists(arrays(), min_size=15, max_size=15), st.integers(0, 6), st.integers(0, 3), st.data())
def schedule(wild: list[object], groups: int, devices: int, data: st.DataObject) -> None:
    attempt(_core.Simulator, *wild)

    seconds = drawn_seconds(data, reals if data.draw(st.booleans()) else st.floats(0, 3))
    tensors = data.draw(csr(groups))
    bonds = data.draw(st.lists(st.integers(-1, groups), max_size=2))
    arguments: list[object] = [
        seconds(groups, devices),
        np.arange(groups, dtype="i4"),
        np.array(data.draw(st.lists(st.integers(0, 4), min_size=groups, max_size=groups)), "i4"),
        tensors[0],
        seconds(len(tensors[0])),
        *tensors[1:],
        np.array(bonds, "i4"),
        np.array(bonds[::-1], "i4"),
        drawn_links(data),
        seconds(devices, devices),
        seconds(devices, devices),
        seconds(devices),
        data.draw(st.one_of(st.just(0.0), reals)),
        data.draw(st.integers(-1, 2)),
    ]
    if data.draw(st.booleans()):
        arguments[data.draw(st.integers(0, 14))] = wild[0]
    factor = data.draw(st.one_of(st.just(1.0), reals))
    simulator = attempt(_core.Simulator, *arguments, rate=data.draw(st.booleans()), corun_factor=factor)
    if not isinstance(simulator, _core.Simulator):
        return
    _simulate(simulator, wild, groups, devices, data)


@given(st.lists(arrays(), min_size=13, max_size=13), st.integers(0, 6), st.integers(0, 3), st.data())
def overlap(wild: list[object], groups: int, lanes: int, data: st.DataObject) -> None:
    attempt(_core.OverlapSimulator, *wild, data.draw(oddities), data.draw(oddities))
    costs = st.one_of(st.floats(0, 3), reals) if data.draw(st.booleans()) else st.floats(0, 1e308)
    seconds = drawn_seconds(data, costs)
    tensors = data.draw(csr(groups))
    arguments: list[object] = [
        seconds(groups, lanes),
        np.arange(groups, dtype="i4"),
        np.ones(groups, "u1"),
        tensors[0],
        seconds(len(tensors[0])),
        *tensors[1:],
        np.arange(groups, dtype="i4"),
        drawn_links(data),
        seconds(lanes, lanes),
        seconds(lanes, lanes),
        seconds(lanes),
        np.zeros(lanes, "i4"),
        data.draw(costs),
        data.draw(st.one_of(st.floats(1, 2), reals)),
    ]
    if data.draw(st.booleans()):
        arguments[data.draw(st.integers(0, 14))] = wild[0]
    simulator = attempt(_core.OverlapSimulator, *arguments)
    if isinstance(simulator, _core.OverlapSimulator):
        _simulate(simulator, wild, groups, lanes, data)


def _simulate(
    simulator: _core.Simulator | _core.OverlapSimulator,
    wild: list[object],
    groups: int,
    devices: int,
    data: st.DataObject,
) -> None:
    """Every method of a simulator, several of them at once."""
    limit = data.draw(reals)
    attempt(simulator.simulate, wild[1], limit)
    attempt(simulator.simulate_batch, wild[2], data.draw(st.one_of(numbers, oddities)), data.draw(oddities))
    attempt(simulator.breakdown, wild[3])
    fits = np.array(data.draw(st.lists(st.integers(-1, devices), min_size=groups, max_size=groups)), "i4")
    rows = np.tile(fits, (40, 1))
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(attempt, simulator.simulate_batch, rows, 2**31 - 1, limit) for _ in range(3)]
        parts = attempt(simulator.breakdown, fits)
        del simulator
        for call in calls:
            call.result()
    if parts is not None:  # what it shows outlives it
        views = parts.device_seconds, parts.subgraph_of, parts.lane_of, parts.start_seconds
        del parts
        gc.collect()
        assert [len(view) for view in views[:2]] == [devices, groups]


@given(
    st.lists(st.one_of(oddities, st.just(lambda: 1.0), reals.map(lambda r: lambda: r)), max_size=4),
    st.one_of(st.floats(0, 1e-3), oddities),
    st.fixed_dictionaries(
        {},
        optional={
            "min_rounds": st.one_of(st.integers(0, 20), oddities.filter(lambda n: n is not True)),
            "confidence": st.one_of(st.floats(0, 1), oddities),
            "margin": st.one_of(reals, oddities),
            "seed": numbers,
        },
    ),
    st.lists(numbers, min_size=2, max_size=2),
)
def race(samplers: list[object], budget: object, options: dict[str, object], signs: list[object]) -> None:
    attempt(_core.log_evidence_slower, *signs)
    result = attempt(_core.race_samplers, samplers, budget, max_rounds=30, **options)
    attempt(_core.Profiler.race, samplers, budget, max_rounds=30, **options)
    attempt(_core.Profiler.race, [None] * len(samplers), 0.0, progress=budget)

    def raises() -> float:
        raise KeyError("from a callback")

    with suppress(KeyError, *ORDINARY):
        _core.race_samplers([raises, *samplers], 0.0, max_rounds=3)
    if isinstance(result, _core.RaceResult):
        entries = result.entries
        del result
        gc.collect()
        assert all(np.isfinite(entry.samples).all() for entry in entries)


@given(
    st.lists(st.binary(max_size=200), min_size=2, max_size=2), st.lists(st.integers(0, 9), max_size=9), reals
)
def outputs(contents: list[bytes], words: list[int], smallest: object) -> None:
    import tempfile

    # Some begin as files of outputs do: with numbers of 8 bytes.
    contents[1] = np.array(words, "u8").tobytes() + contents[1]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("one", "other")]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
        for one, other in ((0, 1), (1, 0), (1, 1)):
            attempt(_core.output_differences, str(paths[one]), str(paths[other]), smallest)
        attempt(_core.output_differences, folder, str(paths[0] / "nowhere"), smallest)


def executable() -> None:
    """One compiled model, run in every odd way, from several threads, and after its Profiler is gone."""
    import tempfile

    import openvino as ov
    import openvino.opset13 as ops

    with tempfile.TemporaryDirectory() as folder:
        xml = str(Path(folder) / "model.xml")
        x = ops.parameter([2, 3], name="x")
        ov.save_model(ov.Model([ops.result(ops.relu(x), name="y")], [x]), xml)
        profiler = _core.Profiler(native_libraries(), [], {})
        model = profiler.compile(xml, "CPU")
        for path, device in ((xml, "NOWHERE"), ("", ""), (folder, "CPU"), (xml, "HETERO:"), (xml, "CPU.77")):
            attempt(profiler.compile, path, device)
            attempt(profiler.compile, path, device, {"NO_SUCH": "1"}, {"x": "CPU"}, {"x": -1}, 2**64 - 1)
            attempt(profiler.save_op_by_op, path, str(Path(folder) / "outputs"), 1e-9, disturbed=1, noise=0.1)
        attempt(
            profiler.save_op_by_op, xml, folder, -1.0, limit_seconds=-1.0, disturbed=2**31, noise=float("nan")
        )
        attempt(profiler.resident_bytes)
        attempt(model.save_outputs, folder)
        attempt(model.save_outputs, str(Path(folder) / "outputs"), True)
        del profiler
        gc.collect()

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.lists(st.one_of(st.integers(-1, 20), oddities), max_size=4), st.one_of(reals, oddities))
    def odd(arguments: list[object], sample_seconds: object) -> None:
        if not any(isinstance(a, int) and a > 20 for a in arguments):  # what is asked for is done
            attempt(model.run, *arguments)
            attempt(model.run_bytes, *arguments)
        if not (isinstance(sample_seconds, (int, float)) and 0.01 < sample_seconds <= 60):
            attempt(_core.Profiler.race, [model, model], 0.0, max_rounds=6, min_sample_seconds=sample_seconds)
            how = (*arguments, 1, True)[:2]
            attempt(_core.load_seconds, [model, model], *how, sample_seconds)
            attempt(_core.load_seconds, arguments, *how, sample_seconds)
            loads = [([model], *how), ([model, model], 2, False)]
            attempt(_core.race_loads, loads, 0.0, max_rounds=6, sample_seconds=sample_seconds)
            attempt(_core.race_loads, [arguments], 0.0, max_rounds=6, sample_seconds=sample_seconds)

        def progress(*_: object) -> None:
            raise KeyError("from a callback")

        with suppress(KeyError, *ORDINARY):
            _core.Profiler.race([model, None], 0.0, progress=progress)

    # What is asked for is done: nothing here asks for more than a moment.
    short = st.one_of(
        st.floats(0, 2e-3), oddities.filter(lambda n: not (isinstance(n, (int, float)) and 0 < n <= 60))
    )
    few = st.one_of(st.integers(-1, 3), st.sampled_from([2**31, 2**64 - 1, 2**64]), oddities)
    wild = st.tuples(few, few, st.booleans(), st.lists(short, max_size=3))
    tame = st.tuples(
        st.integers(0, 3),
        st.integers(1, 3),
        st.booleans(),
        st.lists(st.floats(0, 2e-3), max_size=3).map(sorted),
    )
    links = st.tuples(few, few, st.one_of(st.floats(0, 3), reals))
    onward = st.tuples(st.just(0), st.integers(1, 3), st.floats(0.1, 3))

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(
        st.lists(st.lists(st.sampled_from([model, model, model, None]), max_size=2), max_size=4),
        st.lists(st.one_of(tame, wild), max_size=3),
        st.lists(st.one_of(onward, links), max_size=3),
        short,
        st.booleans(),
    )
    def several(
        models: list[list[object]],
        begun: list[object],
        onward: list[object],
        seconds: object,
        in_turn: object,
    ) -> None:
        attempt(_core.run_workload, models, begun, onward, seconds, in_turn, spans=in_turn)
        attempt(_core.run_workload, [[model]] * 4, begun, onward, 1e-3, in_turn)

    odd()
    several()
    if _core.run_workload not in _made:
        sys.exit("no workload was run")
    with suppress(KeyError, *ORDINARY):
        _core.Profiler.race([model], 5.0, max_rounds=2**60, progress=lambda *_: {}["from a callback"])
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(attempt, model.run, 200, 1, bool(i % 2), 3) for i in range(4)]
        calls += [pool.submit(attempt, model.node_times) for _ in range(4)]
        calls += [pool.submit(attempt, model.lane_profile) for _ in range(4)]
        calls += [
            pool.submit(attempt, _core.run_workload, [[model]], [(0, 2, False, [])], [], 0.01)
            for _ in range(4)
        ]
        calls += [pool.submit(attempt, _core.load_seconds, [model], 3, bool(i % 2), 0.01) for i in range(4)]
        assert [len(call.result()) for call in calls[:4]] == [200] * 4


TOPICS = {
    "graph_tools": graph_tools,
    "peak_bytes": peak_bytes,
    "partition": partition,
    "schedule": schedule,
    "overlap": overlap,
    "race": race,
    "executable": executable,
    "outputs": outputs,
}


CLASSES = {
    "partition": ("PartitionGraph",),
    "schedule": ("Simulator",),
    "overlap": ("OverlapSimulator",),
}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for topic in sys.argv[2:] or TOPICS:
        call(topic, int(sys.argv[1]))
    print("survived")


def call(topic: str, number: int) -> None:
    calls = TOPICS[topic]
    _made.clear()
    if topic != "executable":
        thorough = settings(
            max_examples=EXAMPLES.get(topic, 30),
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        )
        calls = seed(number)(thorough(calls))
    calls()
    # A class of which nothing was made was not tried.
    missing = {name for name in CLASSES.get(topic, ()) if getattr(_core, name) not in _made}
    if missing:
        sys.exit(f"never made: {', '.join(sorted(missing))}")


if __name__ == "__main__":
    main()
