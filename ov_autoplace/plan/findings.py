"""What was found on the way to a decision: kinds and numbers, and the sentences that people read.

A decision is a list of findings, of which the first one says why the answer is the answer. Programs and tests
read kinds and numbers; sentences are made here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ov_autoplace._base.json_fields import Record
from ov_autoplace._base.text import counted
from ov_autoplace.errors import AutoplaceError

__all__ = ["Explained", "Finding", "Kind", "sentence"]


class Kind(Enum):
    """What a finding says. The value is its name in JSON."""

    # Why the answer is the answer.
    ONLY_DEVICE = "only_device"
    FIRST_THAT_COMPILES = "first_that_compiles"
    FASTEST_THAT_COMPILES = "fastest_that_compiles"
    GIVEN = "given"
    BOUND = "bound"
    FASTEST_DEVICE = "fastest_device"
    NO_MIX_PREDICTED = "no_mix_predicted"
    PREDICTED_NOT_RUN = "predicted_not_run"
    FASTER = "faster"
    AS_FAST = "as_fast"
    NOT_FASTER = "not_faster"
    TOO_FEW_ROUNDS = "too_few_rounds"
    UNCONFIRMED = "unconfirmed"
    WITHOUT_RIVAL = "without_rival"
    NOT_RUN = "not_run"
    PREDICTED = "predicted"
    SINGLE_PREDICTED = "single_predicted"
    NARROW_PREDICTED = "narrow_predicted"
    SURELY_FASTER = "surely_faster"
    UNPROFILED = "unprofiled"
    RIGHT_OUTPUTS = "right_outputs"
    REQUIRED = "required"
    SUSTAINED = "sustained"
    HIGHEST_RATE = "highest_rate"
    NO_RATE_BETTER = "no_rate_better"
    RATE_WITHOUT_RIVAL = "rate_without_rival"
    RATE_PREDICTED = "rate_predicted"
    RATE_SETTLED = "rate_settled"
    JOINT_RATE = "joint_rate"
    JOINT_KEPT = "joint_kept"
    HEADROOM = "headroom"
    # What else was found.
    HEADROOM_BESIDE = "headroom_beside"
    GAIN_PREDICTED = "gain_predicted"
    NOTHING_MEASURED = "nothing_measured"
    NARROWER_BY_LITTLE = "narrower_by_little"
    NARROWER_UNLIKELY = "narrower_unlikely"
    OTHERS_NOT_FASTER = "others_not_faster"
    OTHERS_NOT_RUN = "others_not_run"
    LANES_NOT_ESTIMATED = "lanes_not_estimated"
    NO_EXECUTOR = "no_executor"
    NO_SCHEDULE = "no_schedule"
    SUSTAINED_NO_BETTER = "sustained_no_better"
    STEADY_ONLY = "steady_only"
    AFTER_PAUSES = "after_pauses"
    AFTER_PAUSES_TOO_FEW = "after_pauses_too_few"
    AFTER_PAUSES_FAILED = "after_pauses_failed"
    BESIDE = "beside"
    BESIDE_TOO_FEW = "beside_too_few"
    OUTPUTS_WRONG = "outputs_wrong"
    OUTPUTS_DIFFER = "outputs_differ"
    OUTPUTS_NOT_COMPARED = "outputs_not_compared"
    NOBODY_RIGHT = "nobody_right"
    MENDED = "mended"
    QUOTA = "quota"
    LEFT_OUT = "left_out"
    EMULATED = "emulated"


_OVER_PERIODS = (
    "{0} has {rate:.2f} times the rate of {1} over whole periods, and a 99th percentile of {tail:.3g} ms "
    "instead of {before:.3g} ms"
)
_SENTENCES: dict[Kind, str] = {
    Kind.ONLY_DEVICE: "{0} is the only device: there was nothing to decide",
    Kind.FIRST_THAT_COMPILES: (
        "{0} is the first device that compiles the model; nothing else could be measured: {detail}"
    ),
    Kind.FASTEST_THAT_COMPILES: (
        "{0} is the fastest device alone that compiles the model; nothing else could be measured: {detail}"
    ),
    Kind.GIVEN: "taken from {detail}; nothing was searched or measured",
    Kind.BOUND: (
        "{0} is the fastest device and no mix of devices is predicted to be faster: even with every group of "
        "operations on its best device less than {gain:.0f} % would be gained"
    ),
    Kind.FASTEST_DEVICE: "{0} is the fastest device and no mix of devices was measured to be faster",
    Kind.NO_MIX_PREDICTED: "{0} is the fastest device and no mix of devices is predicted to be faster",
    Kind.PREDICTED_NOT_RUN: (
        "{0} is the fastest device, and the time budget ended before {1}, predicted {gain:.1f} % faster, "
        "could be run"
    ),
    Kind.FASTER: (
        "{0} was measured {gain:.1f} % faster than {1} (95 % interval {low:.3f} to {high:.3f} of its time)"
    ),
    Kind.AS_FAST: (
        "{0} was measured as fast as {1} back to back (95 % interval {low:.3f} to {high:.3f} of its time)"
    ),
    Kind.NOT_FASTER: (
        "{0}: {1} was measured at {ratio:.3f} of its time (95 % interval {low:.3f} to {high:.3f}), which is "
        "not faster by more than the noise and {least:.0f} %"
    ),
    Kind.TOO_FEW_ROUNDS: (
        "{0}: {1} looked faster, but the time budget allowed only {runs}, and fewer than {needed:.0f} prove "
        "nothing"
    ),
    Kind.UNCONFIRMED: "{0}: {1} was measured faster once, but {detail}",
    Kind.WITHOUT_RIVAL: "{0} was measured fastest; {detail}",
    Kind.NOT_RUN: "{0} is predicted to be fastest; no candidate could be run: {detail}",
    Kind.PREDICTED: "{0} is predicted to be fastest",
    Kind.SINGLE_PREDICTED: (
        "{0} is predicted to be the fastest device; {1} is predicted {gain:.1f} % faster, which is less than "
        "estimates can be wrong"
    ),
    Kind.NARROW_PREDICTED: "{0} is predicted {gain:.1f} % faster than {1}; {detail}",
    Kind.SURELY_FASTER: (
        "{0} is estimated to take {ratio:.2f} of the time of {1}; no estimate so low was found to be wrong, "
        "so nothing was measured"
    ),
    Kind.UNPROFILED: (
        "{0}: the time budget of {budget:.0f} ms ended before the model was profiled on every device, so "
        "this rests on estimates"
    ),
    Kind.RIGHT_OUTPUTS: "{0} computes the right outputs",
    Kind.REQUIRED: "{0}: the executor was asked for",
    Kind.SUSTAINED: _OVER_PERIODS,
    Kind.HIGHEST_RATE: (
        "{0} was measured faster than {1}: {waiting:.2f} times its rate with waiting callers, {queued:.2f} "
        "with a queue"
    ),
    Kind.NO_RATE_BETTER: "{0} has the highest rate of what OpenVINO offers, and {detail}",
    Kind.RATE_WITHOUT_RIVAL: "{0} has the highest rate; no device can run the model under its own hint",
    Kind.RATE_PREDICTED: "{0} is predicted to have the highest rate; nothing was measured",
    Kind.RATE_SETTLED: "{0}: the model takes too long to gain by how it is called",
    Kind.JOINT_RATE: (
        "{0} was measured at {rate:.2f} times the rate of {1}, as the mean over the loads (95 % interval "
        "{low:.2f} to {high:.2f}), with {tail:.2f} of its 99th percentile"
    ),
    Kind.JOINT_KEPT: "{0}: nothing was measured faster by more than the noise",
    Kind.HEADROOM: "{0} keeps all deadlines up to {headroom:.2f} times the rates that are asked for",
    Kind.HEADROOM_BESIDE: "{0} keeps them up to {headroom:.2f} times, so that is {rate:.2f} times as much",
    Kind.GAIN_PREDICTED: "it is predicted {gain:.1f} % faster than {0} alone",
    Kind.NOTHING_MEASURED: "nothing was measured",
    Kind.NARROWER_BY_LITTLE: (
        "{0} is predicted {gain:.1f} % faster still, by less than estimates can be wrong"
    ),
    Kind.NARROWER_UNLIKELY: "fewer threads are not expected to be faster",
    Kind.OTHERS_NOT_FASTER: "not measured faster: {all}",
    Kind.OTHERS_NOT_RUN: "the time budget ended before these could be run: {all}",
    Kind.LANES_NOT_ESTIMATED: (
        "lanes are not tried, because what they cost is measured, and ZERO_SHOT measures nothing"
    ),
    Kind.NO_EXECUTOR: "the executor cannot run the model: {detail}",
    Kind.NO_SCHEDULE: "no schedule could be run: {detail}",
    Kind.SUSTAINED_NO_BETTER: _OVER_PERIODS + ", which is not better on the whole",
    Kind.STEADY_ONLY: "{0} was better back to back only",
    Kind.AFTER_PAUSES: (
        "after idle gaps of {pause:.0f} ms it takes {ratio:.3f} of the time of {0} ({low:.3f} to {high:.3f})"
    ),
    Kind.AFTER_PAUSES_TOO_FEW: "the time budget allowed only {runs} after idle gaps of {pause:.0f} ms",
    Kind.AFTER_PAUSES_FAILED: "after idle gaps of {pause:.0f} ms it cannot be run: {detail}",
    Kind.BESIDE: "it was measured at {ratio:.3f} of the time of {0}",
    Kind.BESIDE_TOO_FEW: (
        "it was measured at {ratio:.3f} of the time of {0} in {runs}, and fewer than {needed:.0f} prove "
        "nothing"
    ),
    Kind.OUTPUTS_WRONG: "the outputs of {all} are wrong: they differ by {difference:.2g} from {detail}",
    Kind.OUTPUTS_DIFFER: (
        "the outputs of {all} differ by {difference:.2g} from those of {detail}, and who is wrong cannot be "
        "told"
    ),
    Kind.OUTPUTS_NOT_COMPARED: "{detail}",
    Kind.NOBODY_RIGHT: "no candidate that computes the right ones could be run",
    Kind.MENDED: "the model is compiled in another form, which OpenVINO computes rightly",
    Kind.QUOTA: "{detail} holds",
    Kind.LEFT_OUT: "{0} is left out: {detail}",
    Kind.EMULATED: "times of {0} are emulated, its outputs undefined",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes:
        kind: What it says.
        names: Of the candidates or devices that it is about; the first one is what it is said of.
        numbers: By name: shares in percent (``gain``, ``behind``, ``least``), ratios of times (``ratio`` with
            its 95 % interval ``low`` to ``high``) and of rates (``rate``, ``waiting``, ``queued``),
            milliseconds (``tail``, ``before``, ``pause``, ``budget``), counts (``rounds``, ``needed``), a
            factor on all rates of an application (``headroom``). Of ``joint_rate``, ``tail`` is a ratio.
        detail: What somebody else said, such as an error.
    """

    kind: Kind
    names: tuple[str, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)
    detail: str = ""

    @classmethod
    def of(cls, kind: Kind, *names: str, detail: object = "", **numbers: float) -> Finding:
        """A finding from its parts."""
        return cls(kind, names, numbers, str(detail))

    @property
    def is_list(self) -> bool:
        """Whether it says the same of any number of candidates."""
        return self.kind in (Kind.OTHERS_NOT_FASTER, Kind.OTHERS_NOT_RUN)

    def __str__(self) -> str:
        runs = counted(int(self.numbers["rounds"]), "paired run") if "rounds" in self.numbers else ""
        listed = ", ".join(self.names)
        text = _SENTENCES[self.kind]
        return text.format(*self.names, **self.numbers, all=listed, runs=runs, detail=self.detail)

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "kind": self.kind.value,
            "names": list(self.names),
            "numbers": dict(self.numbers),
            "detail": self.detail,
        }

    @classmethod
    def read(cls, record: Record) -> Finding:
        """Read what :meth:`to_json` wrote.

        Raises:
            AutoplaceError: It is nothing of the kind; of the class that the record has.
        """
        numbers = record.record("numbers")
        try:
            found = cls(
                Kind(record.text("kind")),
                record.texts("names"),
                {name: numbers.number(name) for name in numbers.fields},
                record.text("detail"),
            )
            str(found)
        except (ValueError, KeyError, IndexError) as cause:
            if isinstance(cause, AutoplaceError):
                raise
            raise record.error(f"{record.where} is no finding: {cause}") from cause
        return found


class Explained:
    """What somebody decided, with why.

    Attributes:
        findings: The first one says why it came out so.
    """

    findings: tuple[Finding, ...]

    @property
    def reason(self) -> str:
        """The findings as a sentence."""
        return sentence(self.findings)

    @property
    def kind(self) -> Kind:
        """Why it came out so, in a word."""
        return self.findings[0].kind


def sentence(findings: Iterable[Finding]) -> str:
    """What people read of findings, in one sentence."""
    return "; ".join(map(str, findings))
