"""OpenVINO's own benchmark_app with AUTOPLACE known to it: ``ov-autoplace benchmark_app ...``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ov_autoplace.plugin.core_properties import DEVICE_NAME

__all__ = ["run"]


def run(arguments: Sequence[str]) -> None:
    """Run benchmark_app in this process; it leaves through ``SystemExit``.

    Args:
        arguments: Its command line, without the program's name.
    """
    import openvino.tools.benchmark.main as benchmark
    from openvino.tools.benchmark.utils import utils

    # Of these names benchmark_app takes the devices behind the colon for theirs, not for more devices.
    if DEVICE_NAME not in utils.meta_plugins:
        utils.meta_plugins.append(DEVICE_NAME)
    for_other_devices = utils.parse_value_for_virtual_device

    def parse_value(device: str, values: dict[str, str]) -> None:
        """One value for the virtual device, where benchmark_app knows the three of OpenVINO alone."""
        if device == DEVICE_NAME and device in values:
            value = values[device]
            values.clear()
            values[device] = value
        else:
            for_other_devices(device, values)

    benchmark.parse_value_for_virtual_device = parse_value
    sys.argv = ["benchmark_app", *arguments]
    benchmark.main()


if __name__ == "__main__":
    run(sys.argv[1:])
