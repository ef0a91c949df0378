"""Everything that this package raises on purpose.

One sentence each: the value that was wrong and what to do about it. ``exit_code`` is what the
command line leaves with: 2 when the user can mend it, 1 when the program failed.
"""

from __future__ import annotations

from ov_autoplace._base.text import printable

__all__ = [
    "AutoplaceError",
    "CheckpointError",
    "CostTableError",
    "DeviceError",
    "FleetError",
    "ModelError",
    "OptionError",
    "OutputError",
    "PlacementError",
    "ProfilingError",
    "TargetError",
    "TrainingError",
    "VersionMismatchError",
]


class AutoplaceError(Exception):
    """Base of all errors of this package."""

    exit_code = 2

    def __str__(self) -> str:
        # It may quote names from a model or a file, and is meant for a terminal or a log.
        return printable(super().__str__())


# The three that methods of ``openvino.Core`` raise are RuntimeErrors too, as OpenVINO's own are, for programs
# that try out what a device knows.


class ModelError(AutoplaceError, RuntimeError):
    """A model that cannot be read, or that no device (or no placement) can run."""


class DeviceError(AutoplaceError, RuntimeError):
    """A device name that does not exist on this machine, or a device that cannot be used."""


class OptionError(AutoplaceError, RuntimeError):
    """A property or command-line option that is unknown or has a bad value."""


class PlacementError(AutoplaceError):
    """A placement that is incomplete, names unknown ops or devices, or breaks a constraint."""


class CostTableError(AutoplaceError):
    """A cost table that is inconsistent, or a file that does not hold one."""


class TargetError(AutoplaceError):
    """A target profile that cannot be used: not a profile, another schema, devices missing."""


class CheckpointError(AutoplaceError):
    """A checkpoint that cannot be used: damaged, foreign, newer, or for another number of devices."""


class TrainingError(AutoplaceError):
    """Training that cannot start or go on: no graphs, damaged ones, or contradictory settings."""


class FleetError(AutoplaceError):
    """A cluster that does not answer, or none of whose machines can be used."""


class OutputError(AutoplaceError):
    """An output file or folder that cannot be written."""


class ProfilingError(AutoplaceError):
    """A measurement that failed on the device, through no fault of the caller.

    Attributes:
        device: The one device that it was about, if it was one.
    """

    exit_code = 1

    def __init__(self, sentence: str, device: str | None = None) -> None:
        super().__init__(sentence)
        self.device = device


class VersionMismatchError(AutoplaceError, ImportError):
    """What is compiled is missing: the core, or the native part for the OpenVINO that is installed."""
