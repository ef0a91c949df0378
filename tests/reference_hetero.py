"""HETERO's partitioning and the ``hetero`` objective in plain Python: slow, whole-graph, set-based.

Everything is recomputed for the whole graph in every round, as the plugin does it; the C++ core, which
looks at cycles only and packs bits, must agree with this. Which of the two sets of rules holds is that of the
installed release where nobody says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ov_autoplace._base.releases import HeteroRules
from ov_autoplace.cost.table import CostTable
from ov_autoplace.plan.hetero_rules import hetero_rules
from random_tables import consumers_of

OP, PARAMETER, CONSTANT, RESULT, GROUP = range(5)


@dataclass(frozen=True)
class Rules:
    """In what the sets of rules differ.

    Attributes:
        detours_in: In rule 2, a detour may also lead through a boundary that enters the subgraph.
        spares: Rule 2 cuts no tiny subgraph off.
        isolates: There is a rule 3; without it, subgraphs that wait for each other are refused.
    """

    detours_in: bool
    spares: bool
    isolates: bool


RULES = {HeteroRules.REFUSING: Rules(False, False, False), HeteroRules.ISOLATING: Rules(True, True, True)}


@dataclass(frozen=True)
class Graph:
    """``inputs[v]`` lists the tensors that node v reads, one per port; ``producer`` says who makes them."""

    kinds: list[int]
    inputs: list[list[int]]
    producer: list[int]

    @classmethod
    def of(cls, kinds: Sequence[int], producer: Sequence[int], readers: Sequence[Sequence[int]]) -> Graph:
        inputs: list[list[int]] = [[] for _ in kinds]
        for tensor, consumers in enumerate(readers):
            for consumer in consumers:
                inputs[consumer].append(tensor)
        return cls(list(kinds), inputs, list(producer))

    def is_input(self, node: int) -> bool:
        return self.kinds[node] in (PARAMETER, CONSTANT)

    def sources(self, node: int) -> list[int]:
        return [self.producer[tensor] for tensor in self.inputs[node]]

    def ports_reading(self, tensor: int) -> int:
        return sum(inputs.count(tensor) for inputs in self.inputs)

    def readers(self, node: int) -> int:
        return sum(self.sources(v).count(node) for v in range(len(self.kinds)) if self.kinds[v] != RESULT)


Input = tuple[int, int]  # node and port


def components(graph: Graph, cut: set[Input]) -> list[int]:
    label = list(range(len(graph.kinds)))
    for v, inputs in enumerate(graph.inputs):
        for port, tensor in enumerate(inputs):
            if (v, port) not in cut:
                old, new = label[v], label[graph.producer[tensor]]
                label = [new if x == old else x for x in label]
    return [label.index(x) for x in label]  # named by the smallest node


def feedback_cuts(graph: Graph, cut: set[Input], rules: Rules) -> set[Input]:
    """One round of rule 2: the inputs to cut in addition."""
    n = len(graph.kinds)
    label = components(graph, cut)
    # Beside the cuts, every node where dependencies begin counts as entering its own subgraph.
    origins = {
        (v, -1) for v in range(n) if graph.is_input(v) or (graph.kinds[v] == GROUP and not graph.inputs[v])
    }

    def producer(mark: Input) -> int:
        return graph.producer[graph.inputs[mark[0]][mark[1]]]

    above: list[set[Input]] = []
    for v in range(n):
        marks = {m for m in origins if m[0] == v}
        for port, source in enumerate(graph.sources(v)):
            marks |= above[source] | ({(v, port)} & cut)
        above.append(marks)
    entering = [{m for m in above[v] if label[m[0]] == label[v]} for v in range(n)]
    feedback = [{m for m in above[v] if m[1] >= 0 and label[producer(m)] == label[v]} for v in range(n)]

    found: set[Input] = set()
    for v in range(n):
        if not feedback[v]:
            continue
        detour: set[Input] = set()
        for mark in feedback[v]:
            detour |= entering[producer(mark)]
        for mark in entering[v] if rules.detours_in else ():
            if mark[1] >= 0 and label[producer(mark)] != label[v]:
                detour |= entering[mark[0]]
        for port, source in enumerate(graph.sources(v)):
            if feedback[v] & feedback[source] or not detour & entering[source]:
                continue
            tiny = (
                rules.spares
                and graph.ports_reading(graph.inputs[v][port]) == 1
                and not graph.is_input(source)
                and not feedback[source]
                and all(m[1] < 0 or graph.is_input(producer(m)) for m in entering[source])
            )
            if not tiny:
                found.add((v, port))
    return found


def in_cycles(graph: Graph, cut: set[Input], label: list[int]) -> set[int]:
    """Subgraphs that wait for each other."""
    follows: dict[int, set[int]] = {}
    for v, port in cut:
        a, b = label[graph.sources(v)[port]], label[v]
        if a != b:
            follows.setdefault(a, set()).add(b)

    def reachable(start: int) -> set[int]:
        seen: set[int] = set()
        stack = [start]
        while stack:
            for b in follows.get(stack.pop(), ()):
                if b not in seen:
                    seen.add(b)
                    stack.append(b)
        return seen

    return {a for a in follows if a in reachable(a)}


def node_to_isolate(graph: Graph, cut: set[Input], label: list[int], cycles: set[int]) -> int:
    readers = [graph.readers(v) for v in range(len(graph.kinds))]

    def is_leaf(v: int) -> bool:
        return not graph.is_input(v) and readers[v] == 1 and all(graph.is_input(s) for s in graph.sources(v))

    ranked = []
    for v in range(len(graph.kinds)):
        sources = graph.sources(v)
        inner = [s for port, s in enumerate(sources) if (v, port) not in cut]
        if label[v] not in cycles or not inner:
            continue
        from_cycle = any(
            label[s] != label[v] and label[s] in cycles for port, s in enumerate(sources) if (v, port) in cut
        )
        ranked.append(
            (
                not from_cycle,
                not any(readers[s] > 1 for s in inner),
                any(is_leaf(s) for s in inner),
                len(inner) == 1 and readers[v] <= 1,
                len(inner),
                v,
            )
        )
    return min(ranked)[-1]


@dataclass(frozen=True)
class Partition:
    """Subgraph of each node, by its smallest; how many nodes rule 3 cut off; whether HETERO refuses."""

    label: list[int]
    isolated: int
    refused: bool


def partition(graph: Graph, devices: Sequence[int], rules: Rules | None = None) -> Partition:
    rules = rules or RULES[hetero_rules()]
    cut = {
        (v, port)
        for v in range(len(graph.kinds))
        for port, source in enumerate(graph.sources(v))
        if devices[v] != devices[source] and graph.kinds[v] != RESULT
    }
    while more := feedback_cuts(graph, cut, rules) - cut:
        cut |= more
    label = components(graph, cut)
    if not rules.isolates:
        # Constants are copied: nobody waits for one.
        waiting = {(v, port) for v, port in cut if graph.kinds[graph.sources(v)[port]] != CONSTANT}
        return Partition(label, 0, refused=bool(in_cycles(graph, waiting, label)))
    isolated = 0
    while cycles := in_cycles(graph, cut, label):
        v = node_to_isolate(graph, cut, label, cycles)
        cut |= {(v, port) for port in range(len(graph.inputs[v]))}
        label = components(graph, cut)
        isolated += 1
    return Partition(label, isolated, refused=False)


def submodels(graph: Graph, found: Partition) -> int | None:
    """``None`` where HETERO refuses the placement."""
    if found.refused:
        return None
    return len({x for x, kind in zip(found.label, graph.kinds, strict=True) if kind != CONSTANT})


def table_graph(table: CostTable) -> Graph:
    """The partition graph of a table: every shared constant in front, then the groups."""
    constants = [t for t in range(len(table.tensor_producer)) if table.tensor_is_constant[t]]
    shift = len(constants)
    kinds = [CONSTANT] * shift
    for g in range(len(table)):
        is_parameter = table.op_types is not None and table.op_types[g] == "Parameter"
        kinds.append(PARAMETER if is_parameter else GROUP)
    producer, readers = [], []
    for t, owner in enumerate(table.tensor_producer.tolist()):
        consumers = table.tensor_consumers[table.tensor_offsets[t] : table.tensor_offsets[t + 1]].tolist()
        if t in constants:
            producer.append(constants.index(t))
            consumers = [owner, *consumers]
        else:
            producer.append(shift + owner)
        readers.append([shift + c for c in consumers])
    return Graph.of(kinds, producer, readers)


def latency_seconds(table: CostTable, assignment: Sequence[int]) -> tuple[float, list[int]]:
    """The ``hetero`` objective, term by term, and the subgraph of each group."""
    constants = [t for t in range(len(table.tensor_producer)) if table.tensor_is_constant[t]]
    devices = [assignment[table.tensor_producer[t]] for t in constants] + list(assignment)
    found = partition(table_graph(table), devices)
    label = found.label[len(constants) :]
    terms = [math.inf] * found.refused
    terms += [table.op_seconds[g, d] for g, d in enumerate(assignment)]
    device_of = {label[g]: assignment[g] for g in range(len(table))}
    terms += [table.launch_seconds[d] for d in device_of.values()]
    if len(set(device_of.values())) > 1:
        terms.append(table.mix_seconds)
    for t, producer in enumerate(table.tensor_producer.tolist()):
        if table.tensor_is_constant[t]:
            continue
        consumers = table.tensor_consumers[table.tensor_offsets[t] : table.tensor_offsets[t + 1]].tolist()
        for subgraph in {label[c] for c in consumers} - {label[producer]}:
            pair = assignment[producer], device_of[subgraph]
            terms.append(
                table.transfer_latency[pair] + table.transfer_seconds_per_byte[pair] * table.tensor_bytes[t]
            )
    first_seen = list(dict.fromkeys(label))
    return math.fsum(terms), [first_seen.index(x) for x in label]


def random_table(rng: np.random.Generator, groups: int, devices: int, constants: int = 0) -> CostTable:
    """A random DAG of groups with shared constants and one unsupported (group, device) pair at times."""
    producer: list[int] = []
    readers: list[list[int]] = []
    for g in range(groups - 1):
        for _ in range(1 + (rng.random() < 0.2)):
            later = np.arange(g + 1, min(groups, g + 2 + int(rng.integers(8))))
            count = min(len(later), int(rng.integers(1, 4)))
            readers.append(sorted(rng.choice(later, count, replace=False).tolist()))
            producer.append(g)
    is_constant = [False] * len(producer)
    for _ in range(constants):
        members = rng.choice(groups, min(groups, int(rng.integers(2, 5))), replace=False).tolist()
        producer.append(members[0])
        readers.append(members[1:])
        is_constant.append(True)
    op_seconds = rng.uniform(1e-6, 1e-3, (groups, devices))
    if rng.random() < 0.3:
        op_seconds[int(rng.integers(groups)), int(rng.integers(devices))] = np.inf
    return CostTable(
        devices=tuple(f"D{d}" for d in range(devices)),
        names=tuple(f"g{g}" for g in range(groups)),
        op_seconds=op_seconds,
        tensor_producer=np.array(producer, np.int32),
        tensor_bytes=rng.uniform(0, 1e6, len(producer)),
        tensor_offsets=np.cumsum([0, *map(len, readers)]).astype(np.int32),
        tensor_consumers=np.array([c for r in readers for c in r], np.int32),
        tensor_is_constant=np.array(is_constant, np.bool_),
        tensor_uncuttable=np.zeros(len(producer), np.bool_),
        transfer_latency=rng.uniform(1e-6, 1e-4, (devices, devices)),
        transfer_seconds_per_byte=rng.uniform(1e-12, 1e-9, (devices, devices)),
        launch_seconds=rng.uniform(1e-6, 1e-4, devices),
        mix_seconds=float(rng.uniform(0, 1e-4)),
        memory_bytes=rng.uniform(0, 1e6, groups),
        memory_capacity=np.full(devices, np.inf),
    )


def busy_seconds(table: CostTable, device: Sequence[int]) -> np.ndarray:
    """Seconds of each device for one request, ``inf`` where HETERO would cut what must stay together."""
    latency, subgraph_of = latency_seconds(table, device)
    if not np.isfinite(latency):
        return np.full(table.num_devices, np.inf)
    busy = np.zeros(table.num_devices)
    for g, d in enumerate(device):
        busy[d] += table.op_seconds[g, d]
    runs: dict[int, int] = {}
    for g, subgraph in enumerate(subgraph_of):
        runs[subgraph] = device[g]
    for d in runs.values():
        busy[d] += table.launch_seconds[d]
    for t, producer in enumerate(table.tensor_producer.tolist()):
        if table.tensor_is_constant[t]:
            continue
        readers = {subgraph_of[c] for c in consumers_of(table, t)} - {subgraph_of[producer]}
        for subgraph in readers:
            p, q = device[producer], runs[subgraph]
            rate = table.transfer_seconds_per_byte[p, q]
            busy[q] += table.transfer_latency[p, q] + rate * table.tensor_bytes[t]
    return busy
