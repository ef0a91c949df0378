"""List schedulers on lanes: by their publications' examples, by their definitions, and on random graphs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.list_schedule import ListSchedule, _earliest, _occupy
from ov_autoplace.solvers.list_schedulers import (
    LIST_SCHEDULERS,
    critical_path_assignment,
    heft_assignment,
    upward_ranks,
)
from ov_autoplace.solvers.tasks import TaskGraph, _Contraction, seconds_after, task_graphs
from random_tables import make_table, random_table

# Topcuoglu et al. 2002, figure 2: a graph of ten tasks on three processors.
COSTS = [[14, 16, 9], [13, 19, 18], [11, 13, 19], [13, 8, 17], [12, 13, 10]]
COSTS += [[13, 16, 9], [7, 15, 11], [5, 11, 14], [18, 12, 20], [21, 7, 16]]
ARCS = [(1, 2, 18), (1, 3, 12), (1, 4, 9), (1, 5, 11), (1, 6, 14), (2, 8, 19), (2, 9, 16), (3, 7, 23)]
ARCS += [(4, 8, 27), (4, 9, 23), (5, 9, 13), (6, 8, 15), (7, 10, 17), (8, 10, 11), (9, 10, 13)]
RANKS = [108.0, 77.0, 80.0, 80.0, 69.0, 63.333, 42.667, 35.667, 44.333, 14.667]
PROCESSORS = [3, 1, 3, 2, 3, 2, 3, 1, 2, 2]


def published() -> tuple[Problem, TaskGraph]:
    """That graph, in which a byte moves in a second."""
    table = make_table(COSTS, [(a - 1, size, [b - 1]) for a, b, size in ARCS])
    problem = Problem.of(table, objective="overlap")
    return problem, next(iter(task_graphs(problem)))


def test_heft_gives_the_schedule_of_its_publication() -> None:
    problem, pieces = published()
    assert upward_ranks(problem, pieces) == pytest.approx(RANKS, abs=5e-4)
    assert (heft_assignment(problem, pieces) + 1).tolist() == PROCESSORS


def shortest_way(pieces: TaskGraph, table, task: int, lane: int) -> float:
    """The optimistic cost of a task on a lane, as Arabnejad and Barbosa define it, by recursion."""
    longest = 0.0
    for reader, producers in enumerate(pieces.producers):
        for p, size in producers:
            if p != task:
                continue
            ways = []
            for other in range(table.num_devices):
                way = shortest_way(pieces, table, reader, other) + float(pieces.seconds[reader, other])
                if other != lane:
                    way += float(table.transfer_latency[lane, other] + table.launch_seconds[other])
                    way += float(table.transfer_seconds_per_byte[lane, other] * size)
                ways.append(way)
            longest = max(longest, min(ways))
    return longest


@pytest.mark.seeds(10)
def test_optimistic_costs_are_those_of_their_definition(seed: int) -> None:
    table = random_table(seed + 40_000, 9, 3)
    problem = Problem.of(table, objective="overlap")
    pieces = next(iter(task_graphs(problem)))
    costs = seconds_after(problem, pieces)
    expected = [[shortest_way(pieces, table, task, lane) for lane in range(3)] for task in range(len(pieces))]
    assert costs == pytest.approx(np.array(expected))


@pytest.mark.parametrize("scheduler", LIST_SCHEDULERS)
def test_what_hangs_together_and_memory_bind_every_schedule(scheduler: str) -> None:
    # Two lanes of a processor with room for half of the groups, and a slow device with room for all.
    table = make_table(
        [[1.0, 9.0]] * 8,
        [(g, 0.0, [g + 1]) for g in range(7)],
        devices=("CPU", "GPU"),
        memory_bytes=np.full(8, 10.0),
        colocation=[0, -1, -1, 0, -1, 1, -1, 1],
    )
    table = with_lanes(replace(table, memory_capacity=np.array([45.0, np.inf])), "CPU", 2)
    problem = Problem.of(table, objective="overlap")
    for tasks in task_graphs(problem):
        answer = LIST_SCHEDULERS[scheduler](problem, tasks)
        groups = problem.units.to_groups(answer)
        assert groups[0] == groups[3]
        assert groups[5] == groups[7]
        assert (groups != 2).sum() <= 4


def test_joined_busy_times_leave_the_same_gaps_as_single_ones() -> None:
    random = np.random.default_rng(60221)
    for _ in range(30):
        joined: list[tuple[float, float]] = []
        single: list[tuple[float, float]] = []
        for _ in range(60):
            ready, length = random.integers(160) / 8, float(random.choice([0.125, 0.5, 2.0]))
            begin = _earliest(joined, ready, length)
            assert begin == _earliest(single, ready, length)
            _occupy(joined, begin, begin + length)
            single = sorted([*single, (begin, begin + length)])
        assert len(joined) < len(single)
        assert all(end < begin for (_, end), (begin, _) in pairwise(joined))


@pytest.mark.seeds(5)
def test_tasks_hold_the_operations_whose_time_they_take(seed: int) -> None:
    """Ends of long chains once lost their task, and lay on the first lane whatever was decided."""
    seconds = np.random.default_rng(seed).uniform(1, 9, (61, 2))
    edges = [(g, 1.0, [g + 2 if g < 58 else 60]) for g in range(60)]  # two chains, which meet at the end
    problem = Problem.of(
        make_table(seconds, edges, transfer_latency=np.full((2, 2), 99.0)), objective="overlap"
    )
    for tasks in task_graphs(problem):
        held = np.array([problem.units.op_seconds[units].sum(axis=0) for units in tasks.units])
        taken = np.zeros_like(held)
        np.add.at(taken, tasks.together, tasks.seconds)
        assert taken == pytest.approx(held)
    assert len(tasks) == len(tasks.units) == 3


@pytest.mark.parametrize("shape", ["fans out", "fans in"])
def test_a_hub_costs_no_more_than_its_edges(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wide graph took time with the square of its width: each task that joined the hub woke all others."""
    calls = {"partner": 0, "finish": 0}

    def counted(cls: type, method: str, name: str) -> None:
        original = getattr(cls, method)

        def count(self, *args):
            calls[name] += 1
            return original(self, *args)

        monkeypatch.setattr(cls, method, count)

    counted(_Contraction, "_partner", "partner")
    counted(ListSchedule, "finish_seconds", "finish")
    N, D = 1500, 2
    random = np.random.default_rng(31)
    seconds = random.lognormal(0, 1, (N, 1)) * random.lognormal(0, 0.3, (N, D))
    hub, others = (0, range(1, N)) if shape == "fans out" else (N - 1, range(N - 1))
    edges = [(hub, 1.0, list(others))] if shape == "fans out" else [(i, 1.0, [hub]) for i in others]
    table = make_table(seconds, edges, transfer_latency=0.3 * (1 - np.eye(D)))
    problem = Problem.of(table, objective="overlap")
    graphs = list(task_graphs(problem))
    assert calls["partner"] < 40 * N
    assert critical_path_assignment(problem, graphs[0]) is not None
    assert calls["finish"] < 40 * N
