"""Many requests from many threads to the models of a plan: none is lost, and all answers are one device's."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from joint_plans import IN_CALLER, ONE_THREAD, part
from lane_models import F32, NARROW, by_name, towers
from ov_autoplace import ApplicationPlan
from ov_autoplace.devices.conditions import machine_lines
from ov_autoplace.graph.model_hash import model_hash
from ov_autoplace.graph.passes import NAMED, formed
from ov_autoplace.plan.joint import JointPlan
from ov_autoplace.plan.plan import Plan, PoolPlan

THREADS, REQUESTS, AT_ONCE, VARIANTS = 8, 10_000, 4, 8

LEAVING = "copies"
"""The model that is unloaded and loaded while the others run."""


def scores() -> ov.Model:
    """A MatMul and Softmax."""
    weights = np.random.default_rng(1).standard_normal((24, 5)).astype(np.float32)
    x = ops.parameter([2, 24], np.float32, name="x")
    return ov.Model([ops.result(ops.softmax(ops.matmul(x, ops.constant(weights), False, False), 1))], [x])


def features() -> ov.Model:
    """A convolution and ReLU."""
    weights = np.random.default_rng(2).standard_normal((8, 3, 3, 3)).astype(np.float32)
    x = ops.parameter([1, 3, 12, 12], np.float32, name="x")
    y = ops.convolution(x, ops.constant(weights), [1, 1], [0, 0], [0, 0], [1, 1])
    return ov.Model([ops.result(ops.relu(y))], [x])


def marks() -> ov.Model:
    """Ones in a row of a tensor; it fails while it runs where there is no such row."""
    data, row = ops.parameter([4, 8], np.float32, name="data"), ops.parameter([1, 1], np.int32, name="row")
    ones = ops.constant(np.ones((1, 8), np.float32))
    marked = ops.scatter_nd_update(ops.relu(data), row, ones, name="marked")
    return ov.Model([ops.result(marked)], [data, row])


MODELS: dict[str, Callable[[], ov.Model]] = {
    "lanes": towers,
    "copies": scores,
    "caller": features,
    "failing": marks,
}


def plans() -> dict[str, Plan]:
    """No two run alike, and the one that can fail is given the width with which OpenVINO loses failures."""
    return {
        "lanes": by_name(towers(), (0, 1, 0)),
        "copies": PoolPlan("2 copies", IN_CALLER, (IN_CALLER,) * 2, 2),
        "caller": IN_CALLER,
        "failing": ONE_THREAD,
    }


def saved(folder: Path) -> Path:
    """The plan of all of them, and their files."""
    parts = []
    for name, plan in plans().items():
        model, file = MODELS[name](), folder / f"{name}.xml"
        ov.save_model(model, file, compress_to_fp16=False)
        digest = model_hash(formed(ov.Core().read_model(file), NAMED))
        parts.append(part(name, plan, file, digest=digest, properties=F32))
    path = folder / "app.plan.json"
    machine = machine_lines(ov.Core(), ("CPU",))
    ApplicationPlan(JointPlan("by hand", tuple(parts), machine=machine)).save(path)
    return path


def by_the_plan(path: Path) -> dict[str, ov.CompiledModel]:
    return ApplicationPlan.load(path).compile()


def by_the_option(path: Path) -> dict[str, ov.CompiledModel]:
    core, option = ov.Core(), {"AUTOPLACE_APPLICATION": str(path)}
    return {name: core.compile_model(path.with_name(f"{name}.xml"), "AUTOPLACE", option) for name in MODELS}


def sentence(error: BaseException) -> str:
    """What an error says of itself, without where it went through."""
    return str(error).strip().splitlines()[-1]


class Known(NamedTuple):
    """Inputs of a model, and what one plain device makes of them: an output or a sentence."""

    inputs: list[list[np.ndarray]]
    answers: list[np.ndarray | str]

    @classmethod
    def of(cls, name: str) -> Known:
        model, random = MODELS[name](), np.random.default_rng(3)
        inputs = [
            [random.standard_normal(tuple(x.shape)).astype(np.float32) for x in model.inputs]
            for _ in range(VARIANTS)
        ]
        if name == "failing":
            for variant, given in enumerate(inputs):
                given[1] = np.array([[variant]], np.int32)  # there are four rows
        request = ov.Core().compile_model(model, "CPU", {**F32, **NARROW}).create_infer_request()
        answers: list[np.ndarray | str] = []
        for given in inputs:
            try:
                answers.append(request.infer(given)[0].copy())
            except RuntimeError as error:
                answers.append(sentence(error))
        return cls(inputs, answers)

    def agrees(self, variant: int, answer: np.ndarray | str) -> bool:
        """Whether that is what the device said."""
        expected = self.answers[variant]
        if isinstance(expected, str) or isinstance(answer, str):
            return isinstance(expected, str) and isinstance(answer, str) and answer == expected
        return answer.shape == expected.shape and bool(np.allclose(answer, expected, atol=1e-5))


class Shelf:
    """The compiled models; before one of them is taken away, all threads let go of their requests to it."""

    def __init__(self, compiled: Mapping[str, ov.CompiledModel]) -> None:
        self._compiled = dict(compiled)
        self._changed = threading.Condition()
        self._users = THREADS  # of the one that leaves
        self.is_leaving = False

    def request(self, name: str) -> ov.InferRequest:
        return self._compiled[name].create_infer_request()

    def let_go(self) -> None:
        """A thread has no request to it any more."""
        with self._changed:
            self._users -= 1
            self._changed.notify_all()

    def wait_until_it_is_back(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: not self.is_leaving, 60)

    def replace(self, load: Callable[[], ov.CompiledModel]) -> None:
        """Unload it, and load it again."""
        self.is_leaving = True
        with self._changed:
            assert self._changed.wait_for(lambda: self._users == 0, 60)
        former = weakref.ref(self._compiled.pop(LEAVING))
        gc.collect()
        assert former() is None
        self._compiled[LEAVING] = load()
        with self._changed:
            self.is_leaving = False
            self._changed.notify_all()


class Asking:
    """One thread's requests, some of them at once."""

    def __init__(
        self, shelf: Shelf, known: Mapping[str, Known], seed: int, half: Callable[[], object]
    ) -> None:
        self._shelf, self._known, self._half = shelf, known, half
        self._random = np.random.default_rng(seed)
        names = self._random.choice(list(MODELS), REQUESTS // THREADS).tolist()
        self.left = deque((name, int(self._random.integers(VARIANTS))) for name in names)
        self._requests: dict[tuple[int, str], ov.InferRequest] = {}
        self.finished: Counter[tuple[str, int]] = Counter()
        self.wrong: list[tuple[str, int, np.ndarray | str]] = []

    def work(self) -> None:
        has_let_go = False
        try:
            while self.left:
                if self._shelf.is_leaving and not has_let_go:
                    self._requests = {key: own for key, own in self._requests.items() if key[1] != LEAVING}
                    self._shelf.let_go()
                    has_let_go = True
                if chosen := self._next(has_let_go):
                    self._run(chosen)
                else:
                    self._shelf.wait_until_it_is_back()
                if self.finished.total() >= REQUESTS // THREADS // 2:
                    self._half()
        finally:
            self._requests.clear()
            if not has_let_go:
                self._shelf.let_go()

    def _next(self, has_let_go: bool) -> list[tuple[str, int]]:
        """Requests to what is there; those to the model that is away come later."""
        is_away = has_let_go and self._shelf.is_leaving
        chosen: list[tuple[str, int]] = []
        for _ in range(len(self.left)):
            asked = self.left.popleft()
            if is_away and asked[0] == LEAVING:
                self.left.append(asked)
            else:
                chosen.append(asked)
            if len(chosen) == AT_ONCE:
                break
        return chosen

    def _run(self, chosen: list[tuple[str, int]]) -> None:
        started = []
        for place, (name, variant) in enumerate(chosen):
            if (place, name) not in self._requests:
                self._requests[place, name] = self._shelf.request(name)
            request, given = self._requests[place, name], self._known[name].inputs[variant]
            if self._random.random() < 0.5:
                request.start_async(given)
                started.append((name, variant, request))
            else:
                self._check(name, variant, lambda r=request, g=given: r.infer(g)[0])
        for name, variant, request in started:
            self._check(name, variant, lambda r=request: (r.wait(), r.results[0])[1])

    def _check(self, name: str, variant: int, outcome: Callable[[], np.ndarray]) -> None:
        answer: np.ndarray | str
        try:
            answer = outcome()
        except RuntimeError as error:
            answer = sentence(error)
        if not self._known[name].agrees(variant, answer):
            self.wrong.append((name, variant, answer))
        self.finished[name, variant] += 1


@pytest.mark.alone
@pytest.mark.parametrize("compile_all", [by_the_plan, by_the_option])
def test_nothing_is_lost_while_one_model_fails_and_another_one_is_loaded_anew(
    compile_all: Callable[[Path], dict[str, ov.CompiledModel]], tmp_path: Path
) -> None:
    path = saved(tmp_path)
    known = {name: Known.of(name) for name in MODELS}
    assert sum(isinstance(answer, str) for answer in known["failing"].answers) == VARIANTS - 4
    shelf, half = Shelf(compile_all(path)), threading.Event()
    asking = [Asking(shelf, known, seed, half.set) for seed in range(THREADS)]
    wanted = sum((Counter(own.left) for own in asking), Counter())
    with ThreadPoolExecutor(THREADS) as threads:
        running = [threads.submit(own.work) for own in asking]
        assert half.wait(60)
        shelf.replace(lambda: compile_all(path)[LEAVING])
        for own in running:
            own.result(120)
    assert wanted.total() == REQUESTS
    assert sum((own.finished for own in asking), Counter()) == wanted
    assert not [wrong for own in asking for wrong in own.wrong]
