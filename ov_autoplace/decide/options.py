"""The options of a placement, as Python arguments and as OpenVINO-style ``AUTOPLACE_*`` properties."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import openvino as ov

from ov_autoplace._base.progress import Progress
from ov_autoplace.decide.option_values import (
    ARRIVALS,
    DEFAULT_SOLVERS,
    EXECUTORS,
    MODES,
    PARSERS,
    PREFIX,
    nearest_of,
)
from ov_autoplace.errors import OptionError

if TYPE_CHECKING:
    from ov_autoplace.graph.shapes import Call

__all__ = [
    "ARRIVALS",
    "DEFAULT_BUDGET_MS",
    "DEFAULT_SOLVERS",
    "EXECUTORS",
    "MODES",
    "PREFIX",
    "PROPERTY_NAMES",
    "PlacerOptions",
    "option_of",
    "split_config",
]

DEFAULT_BUDGET_MS = {"PROFILE": 2_000.0, "TUNE": 30_000.0}
_NO_PROPERTIES = ("solvers", "seed")  # for whoever studies decisions, not for programs that run models


@dataclass(frozen=True)
class PlacerOptions:
    """What a caller may ask of the placer; fields but ``solvers``, ``seed`` and the last two are properties.

    Attributes:
        mode: ``ZERO_SHOT`` (nothing is compiled), ``PROFILE`` (compiled once per device, finalists are
            raced) or ``TUNE`` (placements are measured and the costs corrected until the budget ends).
        time_budget_ms: Milliseconds of wall-clock time for the whole decision: profiling, transfers, races
            and every compilation for them; only the compilation that is under way when they end is finished.
            What there is no time for is left out, and where not even every device can be profiled, the
            answer rests on estimates, and says so. ``None`` takes the mode's default: 2,000 (``PROFILE``) or
            30,000 (``TUNE``), and more for models that take long to compile or to run.
        pins: ``{pattern: device}``. A pattern is compared with the whole friendly name of each op, case
            counts, and ``*``, ``?`` and ``[...]`` are wildcards. Where several match, the last one decides,
            so exceptions come after the rule. What cannot be separated from a pinned op goes with it. A
            pattern that matches nothing, a device that cannot run a pinned op, and two devices for ops that
            cannot be separated are errors. On the command line: ``--pin PATTERN=DEVICE``, once per pattern.
        memory_limits: ``{device: size}``: the most bytes of weights and results that the ops of a device may
            hold, where results count as long as they are alive. A size is a number of bytes or a text with
            ``B``, ``KB``, ``MB``, ``GB`` (powers of 1000) or ``KiB``, ``MiB``, ``GiB`` (of 1024). Limits that
            no placement keeps are an error. What a device, or the target profile, says of its memory holds
            too. A model that is too large for a device is never compiled for it as a whole, not even to be
            measured: such a device is profiled piece by piece. On the command line:
            ``--memory-limit DEVICE=SIZE``, once per device.
        shapes: ``{input name: sizes}``: the shapes to decide for, which are the ones to measure with; the
            model itself stays as dynamic as it is. A name is the input's friendly name or one of its tensor
            names, and all its sizes are given. A dynamic input without a shape counts, with a warning, with 1
            for a batch, 3x224x224 for an image and 64 for any other dimension, within its bounds; of one
            without a known number of dimensions the shape is required. An input of static shape has no
            other: reshape the model itself first. On the command line: ``--shape 'INPUT=[1,3,224,224]'``,
            once per input. A list of ``{"shapes": {...}, "times": n}`` are several sets of shapes, each of
            which comes so often: a prompt once, and then one token at a time. The model then stays dynamic,
            an inference is all of them, one after the other, and lanes are not tried. The second dimension
            of ``attention_mask`` grows with each call of a model with state.
        target: A target profile (path, catalogue name), for machines other than this one or to spare
            the calibration.
        solvers: Names of the solvers that propose placements, in the order in which they are asked: those of
            ``ov_autoplace.solvers.SOLVERS``, one that was registered there included. ``none``, like an empty
            list, leaves single devices and HETERO. ``TUNE`` asks the first solver of the list again whenever
            it has corrected the costs.
        seed: Seed of everything random.
        isolation: Whether models are compiled and run for measuring in a child process (``YES``, the
            default), so that a plugin that crashes, hangs or runs out of memory ends that one: the device or
            the candidate is left out, and ``Placement.decision`` says why. ``NO`` measures in this process.
        executor: Who runs the answer. ``HETERO``: one device, or HETERO, whose devices take turns.
            ``OVERLAP``: this package's executor, whose lanes and devices work at once, also where that was
            not measured faster; a model that it cannot run is run otherwise, and the decision says why. It is
            refused for a rate of requests, which keep all cores busy by themselves. ``AUTO`` (default):
            whichever is faster; ``HETERO`` for a rate.
        lanes: Into which lanes a CPU may be divided: ``2x1`` is two lanes of one thread each. Several are
            parted by commas, and ``auto`` (default) is whatever its cores allow. A rate of requests has none,
            and refuses them.
        arrivals: When requests arrive. ``ANY`` (default): a schedule on lanes must be faster back to back and
            when each request follows an idle gap of 3 ms, and a width that is as fast back to back is taken
            for being faster then. ``STEADY``: back to back is all that counts. A rate of requests has no gaps
            and no lanes, so that this is no question there.
        output_tolerance: By how much the outputs of candidates may differ before one is refused as wrong, as
            a share of their largest magnitude, which :mod:`ov_autoplace.measure.outputs` defines. ``AUTO``
            (default): by what the precision of the devices and the model's own sensitivity explain. A number:
            so much. ``OFF``: outputs are not compared.
        application: The plan of several models, a file that ``ov-autoplace application`` or
            ``ApplicationPlan.save`` wrote. The model, which is found in it by its content, is compiled as its
            part says, and nothing is decided. Where the same model is in it twice, ``FILE#NAME`` says which.
        cache: Whether ``compile_model`` keeps decisions where no ``CACHE_DIR`` is given, in your cache folder
            (``YES``, the default; ``NO`` decides anew in each program). ``AUTOPLACE_CACHE=NO`` in the
            environment means the same for a whole program.
        decide: When ``compile_model`` decides. ``NOW`` (default): before it returns. ``BEHIND``: it returns
            at once what is known, a decision that is kept or what an estimate says, and another process
            decides for the next compile, while this one is idle. The compiled model's property
            ``AUTOPLACE_DECISION`` says which it is, and ``ov_autoplace.wait()`` waits for what is decided.
        properties: OpenVINO properties that the model will be compiled with.
        progress: Called as the work goes on.
        calls: What ``shapes`` says where that is a list; ``shapes`` is then the largest of them.
    """

    mode: str = "PROFILE"
    time_budget_ms: float | None = None
    pins: Mapping[str, str] = field(default_factory=dict)
    memory_limits: Mapping[str, float] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    target: str | None = None
    solvers: Sequence[str] = DEFAULT_SOLVERS
    seed: int = 0
    isolation: bool = True
    executor: str = "AUTO"
    lanes: Sequence[tuple[int, int]] = ()
    arrivals: str = "ANY"
    output_tolerance: float | str = "AUTO"
    application: str | None = None
    cache: bool = True
    decide: str = "NOW"
    properties: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress | None = None
    calls: Sequence[Call] = ()

    def __post_init__(self) -> None:
        for name, parse in PARSERS.items():
            object.__setattr__(self, name, parse(getattr(self, name)))
        if isinstance(self.shapes, tuple):
            object.__setattr__(self, "calls", self.shapes)
        if self.calls:
            object.__setattr__(self, "shapes", max(self.calls, key=lambda call: call.size).shapes)

    @property
    def budget_seconds(self) -> float:
        """Seconds for one decision; a default may still be extended for a slow model."""
        budget = self.time_budget_ms
        return (DEFAULT_BUDGET_MS.get(self.mode, math.inf) if budget is None else budget) / 1e3

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> PlacerOptions:
        """From keyword arguments; ``None`` is a default, and an unknown name is refused with the nearest one.

        Raises:
            OptionError: An unknown name or a bad value.
        """
        known = [f.name for f in fields(cls)]
        for name in arguments:
            if name not in known:
                raise OptionError(f"there is no option {name!r}{nearest_of(name, known)}")
        return cls(**{name: value for name, value in arguments.items() if value is not None})


def split_config(config: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a ``compile_model`` configuration.

    Returns:
        The placer's arguments (``AUTOPLACE_MODE`` becomes ``mode``) and OpenVINO's own properties.

    Raises:
        OptionError: An ``AUTOPLACE_*`` key that does not exist.
    """
    own: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, given in (config or {}).items():
        # The functions of openvino.properties wrap what they are given, and benchmark_app what it loads.
        value = given.value if isinstance(given, ov.OVAny) else given
        if not str(key).startswith(PREFIX):
            rest[key] = value
            continue
        option = option_of(key)
        if option is None:
            raise OptionError(f"there is no property {key}{nearest_of(str(key), PROPERTY_NAMES, PREFIX)}")
        own[option] = value
    return own, rest


def option_of(property_name: str) -> str | None:
    """The placer's argument that a property sets, or ``None``: ``"mode"`` of ``"AUTOPLACE_MODE"``."""
    return property_name.removeprefix(PREFIX).lower() if property_name in PROPERTY_NAMES else None


PROPERTY_NAMES = tuple(PREFIX + name.upper() for name in PARSERS if name not in _NO_PROPERTIES)
"""The properties that ``compile_model`` and ``set_property`` take for AUTOPLACE."""
