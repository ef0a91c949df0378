"""Whether all ways to run a model compute the same: what each computes is compared, and who is wrong found.

The difference of two answers is, of each floating-point output, the largest difference of two elements over
the largest magnitude in either (a relative error in the maximum norm, from 0 to 2); of other outputs the
share of elements that differ. NaN and infinity in the same places count as equal.

**What precision explains.** With unit roundoff u, errors of n roundings that are independent stay below
``lambda sqrt(n) u`` with probability ``1 - 2 exp(-lambda^2 (1 - u)^2 / 2)`` (Higham and Mary, *A New Approach
to Probabilistic Rounding Error Analysis*, SIAM J. Sci. Comput. 41, 2019, theorem 2.4)::

    tolerance = 4 sqrt(ops) u,  at least 0.001, at most 0.5

u is that of the coarsest precision with which one of the devices computes: 2^-24 for f32, 2^-11 for f16, 2^-8
for bf16, and one step of the coarsest integers that the model's quantised tensors have. Sums inside an op are
accumulated in f32 everywhere; 0.001 is enough for 10^8 of these additions. Of 21 networks in bf16 the largest
difference was 0.35 sqrt(ops) u.

**What the model explains.** A model may be more sensitive than that, and jump: an index of the largest
element, a box that is kept, an expert that is chosen flip where two numbers are almost equal. So nobody is
refused by the formula alone. Where answers differ by more, the model is run op by op, each op by OpenVINO's
reference implementation or compiled alone, and again with every result rounded at random by as much as the
tolerance assumes (Monte Carlo arithmetic: Parker, *Monte Carlo Arithmetic*, UCLA, 1997). Four times what this
changes is tolerated, too. The same run, which no fusion and no sharing of constants can have spoiled, says
which of the answers is the right one. Where it cannot be made or agrees with none, most of three or more
answers do, then a device alone against mixes; devices that differ are not refused, and the decision says so.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import openvino as ov

from ov_autoplace import _core
from ov_autoplace._base.budget import Budget
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.records import bodies_of
from ov_autoplace.plan.decision import Candidate
from ov_autoplace.plan.findings import Finding, Kind

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import Executable

__all__ = ["OutputCheck", "is_random", "tolerance_of"]

_log = logging.getLogger("ov_autoplace")

_LAMBDA, _LEAST, _MOST = 4.0, 1e-3, 0.5
_UNIT_ROUNDOFF = {"f64": 2.0**-24, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
_UNKNOWN = "bf16"  # what a device that does not tell may compute with
_SMALLEST = {"f16": 2.0**-14}  # normal number; what is less is rounded to few digits or to zero
_SMALLEST_NORMAL = 2.0**-126
_QUANTISED = 2.0**-8  # step of eight bits
_COMPRESSED = frozenset({"i8", "u8", "i4", "u4", "u2", "u3", "u6", "nf4", "f4e2m1", "f8e4m3", "f8e5m2"})
_RANDOM = frozenset({"RandomUniform", "Multinomial"})
_DISTURBED, _HEADROOM = 3, 4.0  # runs op by op with errors; tolerated times what they change
_SECONDS = 30.0  # a run op by op that takes longer is given up
_SHARE = 0.01  # of a decision's time, for checking the only answer there is
_FEW_OPS = 300  # models with more are not even read again for that


def is_random(model: ov.Model) -> bool:
    """Whether a model, or a body of one of its ops, draws random numbers."""
    return any(op.get_type_name() in _RANDOM or any(map(is_random, bodies_of(op))) for op in model.get_ops())


def tolerance_of(model: ov.Model, precisions: Sequence[str]) -> float:
    """What rounding explains; see the head of this file.

    Args:
        model: What is run.
        precisions: Those with which its devices compute, as OpenVINO names them.
    """
    ops, unit = 0, max(_UNIT_ROUNDOFF.get(name, _UNIT_ROUNDOFF[_UNKNOWN]) for name in precisions)
    for op in model.get_ops():
        kind = op.get_type_name()
        if kind == "Constant":
            if op.get_output_element_type(0).to_string() in _COMPRESSED:
                unit = max(unit, _QUANTISED)
            continue
        ops += kind not in ("Parameter", "Result")
        if kind == "FakeQuantize":
            unit = max(unit, 1 / op.get_attributes()["levels"])
        elif kind == "ReadValue":
            unit = max(unit, _QUANTISED)  # plugins may keep what a model remembers in eight bits
    return min(max(_LAMBDA * math.sqrt(ops) * unit, _LEAST), _MOST)


@dataclass(eq=False)
class _Answer:
    """What some candidates compute alike.

    Attributes:
        path: Outputs of the first of them.
        names: How far each is from those; of none where it is nobody's but the model's run op by op.
        makes: What they are: devices, or the mixes themselves.
    """

    path: Path
    names: dict[str, float] = field(default_factory=dict)
    makes: set[Hashable] = field(default_factory=set)


class OutputCheck:
    """Compares what the candidates of one decision compute.

    Args:
        model: The one that all of them run.
        precisions: Those with which its devices compute, as OpenVINO names them.
        devices: What its devices are.
        folder: For files, which go with it.
        op_by_op: Runs the model op by op: :meth:`.ProfilingSession.save_op_by_op`.
        tolerance: ``"AUTO"`` is what the head of this file says, a number is tolerated as it is, and
            ``"OFF"`` compares nothing.
        budget: Of the decision; grows by what runs op by op take, unless it is firm.
        is_firm: The user gave it.

    Attributes:
        seconds: What all comparisons took.
    """

    def __init__(
        self,
        model: ov.Model,
        precisions: Sequence[str],
        devices: Iterable[Hashable],
        folder: Path,
        op_by_op: Callable[..., list[float]],
        *,
        tolerance: float | str,
        budget: Budget,
        is_firm: bool,
    ) -> None:
        self.seconds = 0.0
        self._model, self._folder, self._op_by_op = model, folder, op_by_op
        self._budget, self._is_firm, self._devices = budget, is_firm, set(devices)
        self._is_off = tolerance == "OFF"
        self._incomparable = ""
        self._answers: list[_Answer] = []
        self._right: _Answer | None = None  # None where all answer alike, or nobody knows
        self._is_voted = False  # who that is was decided by votes, of which there may be more
        self._referees: dict[bool, _Answer | None] = {}
        self._files = 0
        if not self._is_off and is_random(model):
            self._incomparable = "the model draws random numbers, so its outputs are not compared"
        self._smallest = max(_SMALLEST.get(name, _SMALLEST_NORMAL) for name in precisions)
        self._is_given = not isinstance(tolerance, str)
        self._tolerance = tolerance_of(model, precisions) if isinstance(tolerance, str) else tolerance
        self._allowed = [self._tolerance] * len(model.outputs)

    def note(self, name: str, executable: Executable, make: Hashable, *, is_warm: bool = False) -> None:
        """Compare what a candidate computes; a second time does nothing.

        Args:
            name: Whose it is.
            executable: The compiled candidate.
            make: One of ``devices`` for a device alone, and nobody else's for anything else.
            is_warm: It has run. Otherwise it does so once, which spares a race to warm it up.
        """
        if self._is_off or self._incomparable or any(name in answer.names for answer in self._answers):
            return
        start = None
        try:
            if not is_warm:
                executable.run(0, 1)
            start = time.perf_counter()
            self._compare(name, executable, make)
        except (_core.ProfilerError, ProfilingError) as cause:
            # Whoever cannot be run is found out by those who time it.
            _log.info("the outputs of %s are not compared: %s", name, cause)
        finally:
            if start is not None:
                self.seconds += time.perf_counter() - start

    def rename(self, names: Mapping[str, str]) -> None:
        """Call candidates otherwise, so that others of their former names can be compared."""
        for answer in self._answers:
            answer.names = {names.get(name, name): found for name, found in answer.names.items()}

    def difference(self, name: str) -> float | None:
        """How far a candidate's outputs are from the right ones: the reference's, unless these are wrong.

        ``None`` where they were not compared.
        """
        own = next((answer for answer in self._answers if name in answer.names), None)
        if own is None or self._incomparable:
            return None
        right = self._right or self._answers[0]
        return own.names[name] if own is right else self._distance(own, right)

    def is_wrong(self, name: str) -> bool:
        """Whether a candidate's outputs are wrong."""
        if self._right is None or self._incomparable:
            return False
        return any(name in answer.names for answer in self._answers if answer is not self._right)

    def mark(self, candidates: Iterable[Candidate]) -> None:
        """Write into candidates what is known of their outputs."""
        for candidate in candidates:
            known = [found for name in candidate.parts if (found := self.difference(name)) is not None]
            wrong = [name for name in candidate.parts if self.is_wrong(name)]
            was_wrong, candidate.is_wrong = candidate.is_wrong, bool(wrong)
            candidate.output_difference = max(known, default=None)
            if wrong or was_wrong:
                candidate.dropped = self.refusal(wrong[0]) if wrong else ""

    def refusal(self, name: str) -> str:
        """Why a candidate is not taken whose outputs are wrong."""
        explained = "are tolerated" if self._is_given else "its precision explains"
        return (
            f"its outputs differ by {self.difference(name):.2g} from {self._whose}, more than the "
            f"{max(self._allowed):.2g} that {explained}"
        )

    def findings(self, *, is_chosen_wrong: bool) -> tuple[Finding, ...]:
        """What a decision says of outputs; nothing where all is well.

        Args:
            is_chosen_wrong: Whether it takes somebody whose outputs are wrong.
        """
        if self._incomparable:
            return (Finding.of(Kind.OUTPUTS_NOT_COMPARED, detail=self._incomparable),)
        others = [answer for answer in self._answers if answer is not (self._right or self._answers[0])]
        if not others:
            return ()
        names = [name for answer in others for name in answer.names]
        if self._right is None:
            first = self._answers[0]
            furthest = max(self._distance(answer, first) for answer in others)
            whose = next(iter(first.names))
            return (Finding.of(Kind.OUTPUTS_DIFFER, *names, detail=whose, difference=furthest),)
        furthest = max(self._distance(answer, self._right) for answer in others)
        wrong = Finding.of(Kind.OUTPUTS_WRONG, *names, detail=self._whose, difference=furthest)
        return (wrong, Finding(Kind.NOBODY_RIGHT)) if is_chosen_wrong else (wrong,)

    @property
    def _whose(self) -> str:
        """What is compared with."""
        op_by_op = "the model run op by op"
        if self._right is None or not self._right.names:
            return f"those of {op_by_op}"
        name = next(iter(self._right.names))
        return f"those of {name}" + (
            f", which are those of {op_by_op}" if any(self._referees.values()) else ""
        )

    def _compare(self, name: str, executable: Executable, make: Hashable) -> None:
        own = _Answer(self._new_file(), {name: 0.0}, {make})
        executable.save_outputs(str(own.path))
        for answer in self._answers:
            found = self._differences(own, answer)
            if self._agree(found):
                answer.names[name] = max(found, default=0.0)
                answer.makes.add(make)
                own.path.unlink()
                break
        else:
            if self._answers:
                again = _Answer(self._new_file())
                executable.save_outputs(str(again.path), anew=True)
                if not self._agree(self._differences(own, again)):
                    self._incomparable = (
                        f"the outputs of {name} change from run to run, so they are not compared"
                    )
                    return
            self._answers.append(own)
            if len(self._answers) == 1 and not self._is_suspicious(own):
                return
            self._decide()
            return
        if self._is_voted:
            self._vote()

    def _is_suspicious(self, answer: _Answer) -> bool:
        """Whether the only answer is not that of the reference implementations, where these take no time."""
        if len(self._model.get_ops()) > _FEW_OPS:
            return False
        quick = self._run_op_by_op(evaluate=True, compile=False, limit_seconds=_SHARE * self._budget.seconds)
        return quick is not None and not self._agree(self._differences(answer, quick[0]))

    def _decide(self) -> None:
        """Find out who is right, where answers differ."""
        self._right, self._is_voted = None, False
        referees = []
        for evaluate in (True, False):
            referee = self._referee(evaluate)
            if referee is None:
                continue
            self._merge()
            found = [a for a in self._answers if self._agree(self._differences(a, referee))]
            if found:
                self._right = min(found, key=lambda answer: self._distance(answer, referee))
                return
            referees.append(referee)
        if len(referees) == 2 and self._agree(self._differences(*referees)):
            self._right = referees[0]
        else:
            self._vote()

    def _vote(self) -> None:
        """The answer of most is the right one, or else that of a device alone against those of mixes."""
        self._right, self._is_voted = None, True
        votes = sorted((len(answer.names), i) for i, answer in enumerate(self._answers))
        alone = [answer for answer in self._answers if answer.makes & self._devices]
        if len(votes) > 1 and votes[-1][0] > max(1, votes[-2][0]):
            self._right = self._answers[votes[-1][1]]
        elif len(votes) > 1 and len(alone) == 1:
            self._right = alone[0]

    def _merge(self) -> None:
        """Put answers together that differ by no more than is tolerated now."""
        kept: list[_Answer] = []
        for answer in self._answers:
            same = next((k for k in kept if self._agree(self._differences(answer, k))), None)
            if same is None:
                kept.append(answer)
            else:
                further = self._distance(answer, same)
                same.names |= {name: max(value, further) for name, value in answer.names.items()}
                same.makes |= answer.makes
        self._answers = kept

    def _referee(self, evaluate: bool) -> _Answer | None:
        """The model run op by op, once; ``None`` where that cannot be done."""
        if evaluate not in self._referees:
            start = time.perf_counter()
            seconds = min(_SECONDS, self._budget.left) if self._is_firm else _SECONDS
            noise = self._tolerance / math.sqrt(len(self._model.get_ops()))
            found = self._run_op_by_op(
                evaluate=evaluate, compile=True, limit_seconds=seconds, disturbed=_DISTURBED, noise=noise
            )
            self._referees[evaluate] = None if found is None else found[0]
            if found is not None and not self._is_given:
                self._allowed = [max(a, _HEADROOM * s) for a, s in zip(self._allowed, found[1], strict=True)]
            if not self._is_firm:
                self._budget.seconds += time.perf_counter() - start
        return self._referees[evaluate]

    def _run_op_by_op(self, **how: Any) -> tuple[_Answer, list[float]] | None:
        """What it computes, and how far disturbed runs are from that, by output."""
        answer = _Answer(self._new_file())
        try:
            return answer, self._op_by_op(answer.path, self._smallest, **how)
        except ProfilingError as cause:
            _log.info("%s", cause)
            return None

    def _new_file(self) -> Path:
        self._files += 1
        return self._folder / f"outputs{self._files}"

    def _differences(self, one: _Answer, other: _Answer) -> list[float]:
        """How far each output of an answer is from that of another one."""
        return _core.output_differences(str(one.path), str(other.path), self._smallest)

    def _distance(self, one: _Answer, other: _Answer) -> float:
        return max(self._differences(one, other), default=0.0)

    def _agree(self, differences: Sequence[float]) -> bool:
        return all(found <= allowed for found, allowed in zip(differences, self._allowed, strict=True))
