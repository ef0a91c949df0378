"""OpenVINO's own benchmark_app with AUTOPLACE known to it: ``ov-autoplace benchmark_app ...``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["run"]


def run(arguments: Sequence[str]) -> None:
    """Run benchmark_app in this process; it leaves through ``SystemExit``.

    Args:
        arguments: Its command line, without the program's name.
    """
    import openvino.tools.benchmark.benchmark as runner
    import openvino.tools.benchmark.main as benchmark
    from openvino.tools.benchmark.utils import utils

    from ov_autoplace.devices.names import core_with_extra_devices

    runner.Core = core_with_extra_devices
    # For these names benchmark_app hands options such as the precision on to the real devices.
    if "AUTOPLACE" not in utils.meta_plugins:
        utils.meta_plugins.append("AUTOPLACE")
    sys.argv = ["benchmark_app", *arguments]
    benchmark.main()


if __name__ == "__main__":
    run(sys.argv[1:])
