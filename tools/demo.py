"""Builds a sample network, places it on two devices with the command line, and runs what came out.

Then two small networks are to run at once, and a plan for both is decided.

The second device is made from the first: XCPU is OpenVINO's CPU plugin once more, held to one thread.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

EXTRA_DEVICES = "XCPU=CPU,INFERENCE_NUM_THREADS=1"
DEVICES = "XCPU,CPU"


def command(*arguments: str) -> None:
    """Run ov-autoplace as a user would, showing what was typed."""
    print(f'\n$ AUTOPLACE_EXTRA_DEVICES="{EXTRA_DEVICES}" ov-autoplace {" ".join(arguments)}', flush=True)
    subprocess.run([sys.executable, "-m", "ov_autoplace", *arguments], check=True)


def first_convolution(path: Path) -> str:
    """Name of the first convolution of a model."""
    import openvino as ov

    ops = ov.Core().read_model(path).get_ordered_ops()
    return next(op.get_friendly_name() for op in ops if "Convolution" in op.get_type_name())


def run(annotated: Path, original: Path) -> None:
    """Compile the annotated model on AUTOPLACE and compare what it answers with the plain CPU."""
    import numpy as np
    import openvino as ov

    import ov_autoplace  # noqa: F401 - makes the device name AUTOPLACE known

    core = ov.Core()
    compiled = core.compile_model(annotated, f"AUTOPLACE:{DEVICES}")
    reference = core.compile_model(original, "CPU")
    random = np.random.default_rng(0)
    image = random.standard_normal(tuple(compiled.inputs[0].shape), dtype=np.float32)
    answer, expected = compiled([image])[0], reference([image])[0]
    difference = np.abs(answer - expected).max() / np.abs(expected).max()
    precision = core.get_property("CPU", "INFERENCE_PRECISION_HINT").to_string()
    used = ", ".join(compiled.get_property("EXECUTION_DEVICES"))
    print(f"\n{annotated} ran on {used} (computing in {precision}, OpenVINO {ov.__version__.split('-')[0]}).")
    print(f"Largest difference from plain CPU: {difference:.1e} of the largest output.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="mobilenet_v2", help="a network of tools/zoo for images")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the files go")
    arguments = parser.parse_args()
    os.environ["AUTOPLACE_EXTRA_DEVICES"] = EXTRA_DEVICES

    import openvino as ov

    import zoo

    pinned = arguments.folder / "pinned"
    pinned.mkdir(parents=True, exist_ok=True)
    path = arguments.folder / f"{arguments.network}.xml"
    ov.save_model(zoo.build(arguments.network, "full"), path, compress_to_fp16=False)
    print(f"{path}: {arguments.network} with random weights, the size of its publication.")
    print("XCPU is no second device: it is the CPU plugin once more, on one thread. On a machine with a GPU")
    print("or NPU, leave AUTOPLACE_EXTRA_DEVICES away and name your own devices.")
    command("annotate", str(path), "-d", DEVICES)
    command("bench", str(path), "-d", DEVICES, "--seconds", "5")
    run(path.with_name(f"{path.stem}.autoplace.xml"), path)

    print("\nWhere mixing does not pay, one device is the answer. To see two at work, pin an op to XCPU:")
    pin = f"{first_convolution(path)}=XCPU"
    command("annotate", str(path), "-d", DEVICES, "--pin", pin, "--mode", "zero-shot", "-o", str(pinned))
    run(pinned / f"{path.stem}.autoplace.xml", path)

    print("\nTwo small models at once, each called by a thread, get in each other's way on all cores:")
    small = [arguments.folder / f"{name}.xml" for name in ("classifier", "tagger")]
    for file, network in zip(small, ("mobilenet_v2", "lstm_lm"), strict=True):
        ov.save_model(zoo.build(network), file, compress_to_fp16=False)
    command("application", *map(str, small), "-d", "CPU")
    print("\nEach of them takes its part of the plan where a program compiles it:")
    print('core.compile_model(model, "AUTOPLACE", {"AUTOPLACE_APPLICATION": "application.plan.json"})')


if __name__ == "__main__":
    main()
