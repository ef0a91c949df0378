"""Compiling and timing one model many times: a session keeps its IR on disk and one C++ profiler."""

from __future__ import annotations

import copy
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino as ov

from ov_autoplace._base.files import os_reason, temporary_folder
from ov_autoplace.devices.extension import extension_path, extensions_of
from ov_autoplace.devices.extra_devices import own_core
from ov_autoplace.devices.models import openvino_reason
from ov_autoplace.devices.names import emulation, full_device_name, precision_of
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.inputs import input_ranges
from ov_autoplace.graph.passes import FOLDED, MEND, static_shapes
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.graph.refusal import refusal_reason, refused_op
from ov_autoplace.graph.shapes import Call, named_shapes
from ov_autoplace.measure.feasibility import Feasibility
from ov_autoplace.measure.isolation.executable import was_lost
from ov_autoplace.measure.model_file import (
    cannot_save,
    check_readable,
    failing_on,
    reported_failure,
    save_ir,
)
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.lane import Lane
from ov_autoplace.plan.partition import completed, count_graph_subgraphs, number_devices
from ov_autoplace.plan.plan import Compiler, LanePlan, PoolPlan, SplitPlan, WholePlan
from ov_autoplace.plan.scheduled import (
    SCHEDULE_DEVICE,
    SCHEDULE_PROPERTIES,
    plan_of,
    scheduled_model,
)
from ov_autoplace.plan.stored_submodels import WeightsFile

if TYPE_CHECKING:
    from ov_autoplace._base.budget import Budget
    from ov_autoplace.measure.isolation.interface import Executable, Pool, Profiler, RaceResult
    from ov_autoplace.measure.outputs import OutputCheck

__all__ = ["ProfilingSession"]

_ALONE_RUNS = 10
_WEIGHTS = "weights.xml"
_MASK = "attention_mask"  # in optimum-intel's and OpenVINO GenAI's models


class ProfilingSession:
    """A model that is compiled for one device after the other, and in pieces, to be timed.

    Use as a context manager: the model's temporary IR lives as long as the session.

    Args:
        core: The caller's, whose devices and settings are copied; ``None`` means one that this process keeps.
        model: Any model; it is not modified. Dynamic inputs take ``shapes`` or the documented defaults.
        devices: Device names.
        properties: OpenVINO properties per device; they win over those set on ``core``.
        shapes: Shape by input name.
        seed: Of the input data.
        isolation: Compile and run in a child process; see ``AUTOPLACE_ISOLATION``.
        feasibility: What the devices support and can hold of the model; the whole model is never compiled for
            one that cannot hold it. ``None`` = every device supports and holds everything.
        beside: Compile in the process of this session, which is to be closed later.
        calls: Several shapes: the model stays dynamic, and an inference is all of them, each as often as it
            comes.

    Attributes:
        makes: What each device is, which is the same for aliases of one.
        outputs: Compares what candidates compute; ``None`` = nobody does.

    Raises:
        OutputError: The temporary folder cannot be written.
        OptionError: A shape does not fit.
        UnreadableModelError: The model holds ops whose library is not known.
    """

    def __init__(
        self,
        core: ov.Core | None,
        model: ov.Model,
        devices: Sequence[str],
        properties: Mapping[str, Mapping[str, Any]] | None = None,
        shapes: Mapping[str, Sequence[int]] | None = None,
        seed: int = 0,
        *,
        isolation: bool = True,
        feasibility: Feasibility | None = None,
        beside: ProfilingSession | None = None,
        calls: Sequence[Call] = (),
    ) -> None:
        from ov_autoplace.measure.isolation.interface import measured_settings, profiler_for
        from ov_autoplace.measure.isolation.profiler import IsolatedProfiler

        core = core or own_core()
        self.devices = tuple(devices)
        self._settings = measured_settings(core, devices, properties)
        self._precisions = [precision_of(core, device, self._settings[device]) for device in devices]
        self.makes = {device: full_device_name(core, device) for device in devices}
        self.emulation = emulation(core, self.devices)
        # A shared process has the settings of one session, so each further one brings its own.
        self._own_settings = {} if beside is None else self._settings
        self.profiler: Profiler = (
            profiler_for(core, devices, properties, isolation=isolation)
            if beside is None
            else beside.profiler
        )
        # What static shapes alone make known is folded, too.
        given = () if calls else (static_shapes(shapes),)
        self._prepared = PreparedModel.of(model).then((*given, *FOLDED))
        self._calls = [(named_shapes(self.model, call), call.times, _growing(self.model)) for call in calls]
        self.properties = properties or {}
        self._extensions = extensions_of(core)
        self.seed = seed
        self._feasibility = feasibility
        self.outputs: OutputCheck | None = None
        self._input_high = input_ranges(self.model)
        self._compiled: dict[str, Executable] = {}
        self._refused: dict[str, str] = {}  # why, by device
        self._resources = ExitStack()
        if beside is None and isinstance(self.profiler, IsolatedProfiler):
            self._resources.callback(self.profiler.close)
        try:
            self._ir = save_ir(self.model, self._resources.enter_context(temporary_folder()))
            weights = os.open(self._ir.with_suffix(".bin"), os.O_RDWR)
            self._resources.callback(os.close, weights)
            self._weights = WeightsFile(weights, self._ir)
            if any(not op.get_type_info().version_id.startswith("opset") for op in self.model.get_ops()):
                check_readable(self._ir, self._extensions)
        except BaseException:
            self._resources.close()
            raise

    @property
    def model(self) -> ov.Model:
        """The static model with unique names and folded shapes that is compiled and timed."""
        return self._prepared.model

    @cached_property
    def feasibility(self) -> Feasibility:
        """The ops of the model, and what the devices support and can hold of them."""
        if self._feasibility is not None:
            return self._feasibility
        graph = self._prepared.graph
        supported = np.ones((len(graph), len(self.devices)), dtype=np.bool_)
        return Feasibility(self.devices, graph, supported, np.full(len(self.devices), np.inf))

    def __enter__(self) -> ProfilingSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop the compiled models, end the child process and remove the temporary IR."""
        self._compiled.clear()
        self._resources.close()

    def compare_outputs(
        self,
        tolerance: float | str,
        budget: Budget,
        *,
        is_firm: bool = False,
    ) -> OutputCheck:
        """Have what candidates compute compared from now on, unless a device is emulated.

        Args:
            tolerance: See :class:`~ov_autoplace.measure.outputs.OutputCheck`, like the others.
            budget: Of the decision.
            is_firm: The user gave it.
        """
        from ov_autoplace.measure.outputs import OutputCheck

        self.outputs = OutputCheck(
            self.model,
            self._precisions,
            self.makes.values(),
            self._ir.parent,
            self.save_op_by_op,
            tolerance="OFF" if self.emulation else tolerance,
            budget=budget,
            is_firm=is_firm,
        )
        return self.outputs

    def save_op_by_op(self, path: Path, smallest: float, **how: Any) -> list[float]:
        """Run the model op by op and keep its outputs; see ``_core.Profiler.save_op_by_op``.

        Args:
            path: The file to keep them in.
            smallest: See ``_core.output_differences``.
            **how: Further keyword arguments.

        Returns:
            How far disturbed runs are from it, by output.

        Raises:
            ProfilingError: It cannot be run so, or not in time.
        """
        with reported_failure("the model cannot be run op by op"):
            found: list[float] = self.profiler.save_op_by_op(
                str(self._ir),
                str(path),
                smallest,
                input_high=self._input_high,
                seed=self.seed,
                extensions=self._extensions,
                **how,
            )
            return found

    def apart(self) -> ProfilingSession:
        """The same model in a process of its own, to be closed before this session.

        What a process compiled before makes the mixes slower that it compiles later, by some percent and by
        a multiple where it was much, even when it is gone. Where there is no child process, or no other one
        can be started, both sessions share a profiler.
        """
        from ov_autoplace.measure.isolation.profiler import IsolatedProfiler

        if isinstance(self.profiler, IsolatedProfiler) and (profiler := self.profiler.another()) is not None:
            other = self.within(profiler)
            other._resources.callback(profiler.close)
            return other
        return self.within(self.profiler)

    def within(self, profiler: Profiler) -> ProfilingSession:
        """The same model where somebody else's are compiled too, to be closed before this session."""
        other = copy.copy(self)
        other._compiled = {}
        other._resources = ExitStack()  # the model's file stays this session's
        other._own_settings = self._settings
        other.profiler = profiler
        return other

    def mended(self) -> ProfilingSession | None:
        """The model as AUTOPLACE compiles it where OpenVINO computes it wrongly: ``graph/passes.py``.

        Returns:
            A session that shares all else with this one, to be used before this one is closed; ``None`` where
            nothing is known to be computed wrongly.
        """
        mended = self._prepared.then((MEND,))
        if MEND.name not in mended.changed:
            return None
        other = copy.copy(self)
        other._prepared = mended
        other._compiled, other._resources = {}, ExitStack()
        folder = self._ir.parent / "mended"
        try:
            folder.mkdir(exist_ok=True)
            other._ir = self._weights.save(mended.model, folder)
        except (OSError, RuntimeError) as cause:
            raise cannot_save(folder, openvino_reason(cause)) from cause
        return other

    def compilation_failure(self, device: str) -> str:
        """Why the model cannot be compiled for ``device``; empty where it can."""
        try:
            self.compile_device(device)
        except ProfilingError as cause:
            return str(cause)
        return ""

    def run_alone(self, device: str) -> Candidate:
        """What a few inferences on one device take, or why there are none."""
        try:
            executable = self.compile_device(device)
            with failing_on(device):
                samples = executable.run(_ALONE_RUNS)
                times = {Load.STEADY: samples}
                return Candidate(device, WholePlan(device), subgraphs=executable.subgraphs, times=times)
        except ProfilingError as cause:
            return Candidate(device, WholePlan(device), dropped=f"failed: {cause}")

    def has_compiled(self, device: str) -> bool:
        """Whether the whole model is compiled for ``device``."""
        return device in self._compiled

    def forget(self) -> None:
        """Drop the compiled models: the next ones are compiled anew, in a new process; see :meth:`apart`."""
        from ov_autoplace.measure.isolation.profiler import IsolatedProfiler

        self._compiled.clear()
        if isinstance(self.profiler, IsolatedProfiler):
            self.profiler.restart()

    def compile_device(self, device: str, *, count_nodes: bool = False) -> Executable:
        """The whole model on one device, compiled once per session unless its nodes are counted.

        Args:
            device: One of :attr:`devices`.
            count_nodes: Make :meth:`Executable.node_times` available, which slows every node a little. What
                was counted is never reset, so each call compiles.

        Raises:
            ProfilingError: The model cannot be timed on that device, or is too large for it.
        """
        if self._feasibility is not None and (reason := self._feasibility.refusal(device)):
            raise ProfilingError(reason)
        if device in self._compiled and not count_nodes:
            return self._compiled[device]
        try:
            executable = self._compile(device, None, count_nodes)
        except ProfilingError as cause:
            raise self._with_op(device, cause) from cause.__cause__
        if not count_nodes:
            self._compiled[device] = executable
        return executable

    def _with_op(self, device: str, cause: ProfilingError) -> ProfilingError:
        """Why the whole model is not compiled for a device, with the op, where that can be found."""
        if ":" in device or was_lost(cause):
            return cause
        if device not in self._refused:
            reason = refusal_reason(cause.__cause__ or cause)
            op = refused_op(self.model, reason, partial(self._compile_part, device))
            which = f"the model cannot be timed on {device}, which refuses the op {op}: {reason}"
            self._refused[device] = which if op else str(cause)
        return ProfilingError(self._refused[device], device)

    def _compile_part(self, device: str, part: ov.Model) -> Executable:
        with TemporaryDirectory(dir=self._ir.parent) as folder:
            path = str(save_ir(part, Path(folder)))
            return self.profiler.compile(path, device, extensions=self._extensions)

    @property
    def counting(self) -> Compiler[Executable]:
        """Compiles anew with each call, with :meth:`Executable.node_times`, which slows nodes a little."""
        return _Counting(self)

    def compile_whole(self, plan: WholePlan, *, count_nodes: bool = False) -> Executable:
        """The whole model on one device, also a virtual one; each call compiles, but for the device itself.

        Args:
            plan: Its properties win over those of the session.
            count_nodes: See :meth:`compile_device`.

        Raises:
            ProfilingError: The model cannot be timed so.
        """
        if plan.is_default:
            return self.compile_device(plan.device, count_nodes=count_nodes)
        if self._feasibility is not None and (reason := self._feasibility.refusal(plan.device)):
            raise ProfilingError(reason)
        return self._compile(plan.device, None, count_nodes, plan.all_properties)

    def compile_split(self, plan: SplitPlan, *, count_nodes: bool = False) -> Executable:
        """The model as HETERO runs it with the device of every op given; each call compiles.

        Raises:
            ProfilingError: HETERO or a device refuses the placement.
        """
        order = [device for device in self.devices if device in plan.devices]
        return self._compile("HETERO:" + ",".join(order), plan.device_of, count_nodes, plan.properties)

    def predicted_submodels(self, plan: SplitPlan) -> int:
        """How many submodels HETERO makes of it, as far as its rules are known."""
        graph = self._prepared.structure
        device_of = completed(self.model, plan.device_of)
        return count_graph_subgraphs(graph, number_devices(graph.names, device_of))

    def compile_lanes(self, plan: LanePlan) -> Executable:
        """The model on lanes and devices that work at once; each call compiles.

        Args:
            plan: What runs where. What is set of a device holds for its lanes too, where the plan does not
                say otherwise.

        Raises:
            PlacementError: The executor cannot run the model so.
            ProfilingError: The model cannot be timed so.
        """
        return self._compile_lanes(plan, {})[0]

    def compile_pool(self, plan: PoolPlan) -> Pool:
        """The models of a pool, each compiled anew, and how many requests they want.

        Raises:
            ProfilingError: One of them cannot be compiled.
        """
        from ov_autoplace.measure.isolation.interface import Pool

        members = tuple(member.compile(self) for member in plan.models)
        wanted = sum(member.optimal_requests for member in members)
        return Pool(members, plan.order, max(wanted, plan.requests), max(m.subgraphs for m in members))

    def compile_counted_lanes(self, plan: LanePlan) -> tuple[Executable, tuple[int, ...]]:
        """The same, with :meth:`Executable.lane_profile` listing nodes, which slows every node a little.

        Returns:
            The model, and the plan's number of each submodel that the profile lists.
        """
        executable, model = self._compile_lanes(plan, {"PERF_COUNT": "YES"})
        listed = plan_of(model)
        assert listed is not None
        return executable, tuple(plan.submodel_of[ops[0]] for ops in listed.ops)

    def _compile_lanes(self, plan: LanePlan, counting: Mapping[str, str]) -> tuple[Executable, ov.Model]:
        lanes = tuple(
            Lane.of(lane.device, {**self._settings.get(lane.device, {}), **dict(lane.properties), **counting})
            for lane in plan.lanes
        )
        # The plan is of the caller's model, of which static shapes have folded more.
        left = {op.get_friendly_name() for op in self.model.get_ops()}
        submodel_of = {name: submodel for name, submodel in plan.submodel_of.items() if name in left}
        model = scheduled_model(
            self.model, replace(plan, lanes=lanes, submodel_of=submodel_of), self._weights
        )
        with ExitStack() as stack:
            folder = self._schedule_folder(stack)
            path = save_ir(model, folder)
            with failing_on("lanes of " + ", ".join(dict.fromkeys(lane.device for lane in lanes))):
                executable = self.profiler.compile(
                    str(path),
                    SCHEDULE_DEVICE,
                    SCHEDULE_PROPERTIES,
                    None,
                    self._input_high,
                    self.seed,
                    [extension_path()],
                    str(folder / _WEIGHTS),
                )
            # After a crash it is compiled again, as long as somebody wants to run it.
            weakref.finalize(executable, stack.pop_all().close)
        return executable, model

    def _schedule_folder(self, stack: ExitStack) -> Path:
        """A folder for a schedule, with a model of its weights, which stay in the session's own file."""
        own = self._ir.parent
        try:
            made = TemporaryDirectory(prefix="schedule-", dir=own, ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(made))
            self._weights.save_constant(folder / _WEIGHTS)
        except OSError as cause:
            raise cannot_save(own, os_reason(cause)) from cause
        return folder

    def race(
        self,
        executables: Sequence[Executable],
        budget_seconds: float,
        *,
        seed: int = 0,
        progress: Callable[[int, int, float], None] | None = None,
        **options: Any,
    ) -> RaceResult:
        """Run executables in turns until one is left or the budget ends.

        Args:
            executables: What to compare.
            budget_seconds: When to stop.
            seed: Of the order in each round.
            progress: Called now and then with (rounds, candidates left, seconds).
            **options: Further keyword arguments of ``_core.Profiler.race``.

        Raises:
            ProfilingError: None of them can be run.
        """
        with reported_failure("no candidate can be run"):
            race: Any = self.profiler.race  # takes what the same profiler compiled
            result: RaceResult = race(
                list(executables), budget_seconds, seed=seed, progress=progress, **options
            )
            return result

    def _compile(
        self,
        device: str,
        device_of: Mapping[str, str] | None,
        count_nodes: bool,
        properties: Mapping[str, str] | None = None,
    ) -> Executable:
        counting = {"PERF_COUNT": "YES"} if count_nodes else {}
        if device_of is not None and MEND.name in self._prepared.changed:
            device_of = completed(self.model, device_of)
        with failing_on(device):
            return self.profiler.compile(
                str(self._ir),
                device,
                {**self._own_settings.get(device, {}), **counting, **(properties or {})},
                None if device_of is None else dict(device_of),
                self._input_high,
                self.seed,
                self._extensions,
                calls=self._calls,
            )


def _growing(model: ov.Model) -> list[str]:
    """Inputs as long as all tokens so far, where a model remembers those: the mask of language models."""
    names = [p.get_friendly_name() for p in model.get_parameters()]
    return [name for name in names if name == _MASK and model.get_sinks()]


class _Counting:
    def __init__(self, session: ProfilingSession) -> None:
        self._session = session

    def compile_whole(self, plan: WholePlan) -> Executable:
        return self._session.compile_whole(plan, count_nodes=True)

    def compile_split(self, plan: SplitPlan) -> Executable:
        return self._session.compile_split(plan, count_nodes=True)

    def compile_lanes(self, plan: LanePlan) -> Executable:
        return self._session.compile_counted_lanes(plan)[0]
