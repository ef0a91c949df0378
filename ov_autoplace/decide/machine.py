"""Where models are placed: the devices of one Core, and what the user wants of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import openvino as ov

from ov_autoplace._base.text import nearest_device
from ov_autoplace.decide.options import PREFIX, PlacerOptions
from ov_autoplace.devices.device_config import config_for
from ov_autoplace.devices.names import resolve_devices
from ov_autoplace.errors import OptionError, ProfilingError

if TYPE_CHECKING:  # compiling with a decision from the cache, which shall be quick, needs none of these
    from ov_autoplace._base.budget import Budget
    from ov_autoplace.cost.table import CostTable
    from ov_autoplace.cost.target import Target
    from ov_autoplace.cost.transfers import TransferFit
    from ov_autoplace.devices.quota import Quota
    from ov_autoplace.devices.widths import Width
    from ov_autoplace.graph.prepare import PreparedModel
    from ov_autoplace.measure.counting import CountedDevices
    from ov_autoplace.measure.session import ProfilingSession
    from ov_autoplace.plan.findings import Finding
    from ov_autoplace.problem.problem import Problem

__all__ = ["KnownCosts", "Machine"]

_log = logging.getLogger("ov_autoplace")


@dataclass(frozen=True, eq=False)
class KnownCosts:
    """What machines of this kind measured of one model, so that it need not be measured again.

    Attributes:
        devices: Device names, D.
        counted: What the devices took for its nodes.
        transfers: What crossings cost.
    """

    devices: tuple[str, ...]
    counted: CountedDevices
    transfers: TransferFit

    def only(self, devices: Sequence[str]) -> KnownCosts:
        """The part that concerns some of the devices, in their order."""
        return KnownCosts(
            tuple(devices),
            self.counted.only([self.devices.index(device) for device in devices], devices),
            self.transfers.for_devices(devices),
        )


@dataclass(frozen=True, eq=False)
class Machine:
    """D devices and how models are placed on them.

    Attributes:
        core: Where the devices are.
        devices: Their names.
        options: What the user asked for.
        known: What is known of the model to be placed; ``None`` = it is measured here.
    """

    core: ov.Core
    devices: tuple[str, ...]
    options: PlacerOptions = field(default_factory=PlacerOptions)
    known: KnownCosts | None = None

    @classmethod
    def of(cls, core: ov.Core, devices: str | Sequence[str] | None, options: PlacerOptions) -> Machine:
        """The devices that a request names, each with the properties that it knows.

        Args:
            core: Where the devices are.
            devices: ``"GPU,CPU"`` or a sequence; all of the Core's when ``None``.
            options: Their properties may be for all devices, or for single ones.

        Raises:
            DeviceError: A device that is not here.
            OptionError: A property that no device knows, or a value that one refuses; no device at all.
        """
        names = resolve_devices(core, devices)
        if not names:
            raise OptionError("OpenVINO finds no device on this machine; install the driver of one")
        properties = config_for(core, names, options.properties)
        return cls(core, names, replace(options, properties=properties))

    @cached_property
    def target(self) -> Target | None:
        """The profile that the options name."""
        if self.options.target is None:
            return None
        from ov_autoplace.cost.target_json import load_target

        return load_target(self.options.target)

    def check_named_devices(self) -> None:
        """Refuse pins to, and limits of, devices that take no part, before anything is measured.

        Raises:
            OptionError: There is one.
        """
        named = [(device, f"the pin {pattern!r}") for pattern, device in self.options.pins.items()]
        named += [(device, "a memory limit") for device in self.options.memory_limits]
        here, listed = self.core.available_devices, ", ".join(self.devices)
        for device, what in named:
            if device in self.devices:
                continue
            if device in here:
                raise OptionError(
                    f"{what} names {device!r}, which is not among the devices asked for, {listed}; "
                    "add it to them"
                )
            whose = "this machine has" if set(self.devices) <= set(here) else "the target has"
            near = nearest_device(device, self.devices)
            hint = f"; did you mean {near!r}?" if near else ""
            raise OptionError(
                f"{what} names {device!r}, but {whose} no such device; the devices are {listed}{hint}"
            )

    @property
    def fingerprint(self) -> str:
        """The devices with their full names, plugin builds and drivers, as text."""
        from ov_autoplace.devices.names import fingerprint

        return fingerprint(self.core, self.devices)

    @property
    def device_settings(self) -> Mapping[str, Mapping[str, Any]]:
        """Properties of the devices in which they differ from a new Core's."""
        from ov_autoplace.devices.names import device_settings

        return device_settings(self.core, self.devices)

    def remarks(self, left_out: Mapping[str, str]) -> tuple[Finding, ...]:
        """What a decision says of devices, and of the quota that CPUs run under.

        Args:
            left_out: Why a device takes no part, by device. A device whose times are made up is named too.
        """
        from ov_autoplace.devices.names import EMULATED, is_emulated
        from ov_autoplace.plan.findings import Finding, Kind

        if self.target is not None and self.options.mode == "ZERO_SHOT":
            found = [d for d in self.devices if EMULATED in self.target.device(d).full_name]
        else:
            found = [d for d in self.devices if is_emulated(self.core, d)]
        said = []
        if self.quota is not None:
            cores, period = self.quota.cores, 1e3 * self.quota.period_seconds
            said.append(Finding.of(Kind.QUOTA, detail=self.quota.label, cores=cores, period=period))
        said += [Finding.of(Kind.LEFT_OUT, device, detail=why) for device, why in left_out.items()]
        return (*said, *(Finding.of(Kind.EMULATED, device) for device in found))

    def widths(self, device: str, *, here: bool = False) -> tuple[Width, ...]:
        """On which parts of its threads a CPU may run a model; none where the user chose.

        Args:
            device: One of the devices.
            here: On this machine, also in ``ZERO_SHOT``, where a target's CPU need not be here.
        """
        from ov_autoplace.devices.names import single_device_config
        from ov_autoplace.devices.widths import chooses_threads, widths_here, widths_of

        if self.target is not None and self.options.mode == "ZERO_SHOT" and not here:
            settings = single_device_config(device, self.options.properties)
            return () if chooses_threads(settings) else widths_of(self.target.device(device).threads)
        return () if self.chooses_threads(device) else widths_here(self.core, device)

    def multiplies_tiles(self, device: str) -> bool:
        """Whether a device is a CPU that computes in a precision for which it has tiles of matrices (AMX)."""
        from ov_autoplace.devices.conditions import has_tiles
        from ov_autoplace.devices.names import precision_of
        from ov_autoplace.devices.widths import is_cpu

        if not has_tiles() or not is_cpu(self.core, device):
            return False
        return precision_of(self.core, device, self._settings(device)) != "f32"

    def confining_width(self, device: str) -> Width | None:
        """What keeps a CPU to a mask that became narrower; ``None`` where the user chose the threads."""
        from ov_autoplace.devices.widths import confining_width, is_cpu

        if not is_cpu(self.core, device) or self.chooses_threads(device):
            return None
        return confining_width()

    def chooses_threads(self, device: str) -> bool:
        """Whether the user said on how many threads a device shall run, for the request or on the Core."""
        from ov_autoplace.devices.widths import chooses_threads

        return chooses_threads(self._settings(device))

    def _settings(self, device: str) -> dict[str, Any]:
        """What a device compiles models of the request with, as far as it differs from a new Core."""
        from ov_autoplace.devices.names import device_settings, single_device_config

        asked = single_device_config(device, self.options.properties)
        return {**device_settings(self.core, (device,))[device], **asked}

    @property
    def quota(self) -> Quota | None:
        """The quota of processor time under which the CPUs among the devices run models on this machine."""
        from ov_autoplace.devices.widths import Cores, is_cpu

        if self.target is not None and self.options.mode == "ZERO_SHOT":
            return None
        quota = Cores.of_this_process().quota
        return quota if quota is not None and any(is_cpu(self.core, d) for d in self.devices) else None

    @property
    def wants_rate(self) -> bool:
        """Whether the caller asks for many requests a second rather than for a short one."""
        hint = self.options.properties.get("PERFORMANCE_HINT", "")
        return str(getattr(hint, "name", hint)).upper() in ("THROUGHPUT", "CUMULATIVE_THROUGHPUT")

    def check_rate(self) -> None:
        """Refuse options that are about one short request, where many requests are to be served.

        Raises:
            OptionError: There is one.
        """
        options = self.options
        asked = {
            "EXECUTOR": options.executor if options.executor == "OVERLAP" else "",
            "LANES": ",".join(f"{count}x{threads}" for count, threads in options.lanes),
        }
        for name, value in asked.items():
            if value:
                raise OptionError(
                    f"{PREFIX}{name} is {value}, which is about lanes that work at once on one request, but "
                    f"PERFORMANCE_HINT asks for many requests at once; leave one of them out"
                )

    def estimating(self, cause: Exception) -> Machine:
        """The same request, answered without measuring anything; says why."""
        _log.warning("costs are estimated, not measured: %s", cause)
        return replace(self, options=replace(self.options, mode="ZERO_SHOT"))

    def without(self, failures: Mapping[str, Exception]) -> Machine:
        """The same request on the devices that did not fail; says which ones did.

        Raises:
            ProfilingError: It needs one that did, because a pin names it.
        """
        for pattern, device in self.options.pins.items():
            if device in failures:
                cause = failures[device]
                raise ProfilingError(
                    f"the pin {pattern!r} asks for {device}, which cannot be used: {cause}", device
                ) from cause
        for device, cause in failures.items():
            _log.warning("%s is left out: %s", device, cause)
        return self.only([device for device in self.devices if device not in failures])

    def only(self, devices: Sequence[str]) -> Machine:
        """The same request on some of the devices."""
        limits = {d: limit for d, limit in self.options.memory_limits.items() if d in devices}
        known = None if self.known is None else self.known.only(devices)
        options = replace(self.options, memory_limits=limits)
        return replace(self, devices=tuple(devices), options=options, known=known)

    def open(
        self,
        prepared: PreparedModel,
        budget: Budget | None = None,
        beside: ProfilingSession | None = None,
    ) -> ProfilingSession:
        """A model on these devices, to be compiled and timed; a context manager.

        Args:
            prepared: The model.
            budget: Of a decision, whose candidates' outputs are compared.
            beside: Compile in the process of this session.

        Raises:
            OutputError: The temporary folder cannot be written.
        """
        from ov_autoplace.measure.opening import open_session

        options = self.options
        session = open_session(
            self.core,
            prepared,
            self.devices,
            properties=options.properties,
            memory_limits=options.memory_limits,
            target=self.target,
            seed=options.seed,
            isolation=options.isolation,
            beside=beside,
            calls=options.calls,
        )
        if budget is not None:
            is_firm = options.time_budget_ms is not None
            session.compare_outputs(options.output_tolerance, budget, is_firm=is_firm)
        return session

    def problem(self, table: CostTable, objective: str = "hetero") -> Problem:
        """Where to place the groups of a table, as the user wants it.

        Args:
            table: The costs.
            objective: What placements are scored by.

        Raises:
            OptionError: A pin or a limit does not fit the table.
            PlacementError: Some group is left without a device.
        """
        from ov_autoplace.problem.problem import Problem

        return Problem.of(table, self.options.memory_limits, self.options.pins, objective)
