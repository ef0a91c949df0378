"""Shows what is gained on this machine's CPU, with four commands that a user could type.

A small classifier is faster on fewer threads, a recurrent network that reads in both directions on two lanes,
and two models at once each on cores of their own. The fourth network gains nothing, and the table says so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SECONDS = "3"  # of each race
PROGRAM = "ov-autoplace"
DEFAULT = "OpenVINO's default"  # among the plans of several models


def answer_of(*arguments: str) -> dict[str, Any]:
    """Run a command of ov-autoplace as a user would, and return what it prints with ``--json``."""
    print(f"\n$ {PROGRAM} {' '.join(arguments)}", flush=True)
    command = [sys.executable, "-m", "ov_autoplace", *arguments, "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def show(theirs: str, ours: str, ratio: str, why: str) -> None:
    """One result: OpenVINO's default, AUTOPLACE, how they compare with the 95 % interval, and the reason."""
    print(f"  {theirs}   {ours}   {ratio}\n  {why}", flush=True)


def latency(path: Path, *more: str) -> None:
    """A model alone: AUTOPLACE beside the plain CPU."""
    answer = answer_of("bench", str(path), "-d", "CPU", "--seconds", SECONDS, *more)
    rows = {row["name"]: row for row in answer["rows"]}
    cpu, ours = (rows[name]["measured"]["steady"]["median_ms"] for name in ("CPU", "AUTOPLACE"))
    ratio = rows["CPU"]["answer_over"]["steady"]
    low, high = ratio["ci95"]
    show(
        f"CPU {cpu:.3f} ms",
        f"AUTOPLACE {ours:.3f} ms",
        f"{ratio['median']:.2f} of the time [{low:.2f}, {high:.2f}]",
        answer["decision"],
    )


def at_once(*paths: Path) -> None:
    """Several models, each called by a thread of its own: their rates beside OpenVINO's default."""
    answer = answer_of("application", *map(str, paths), "-d", "CPU")
    found = {joint["name"]: joint for joint in answer["candidates"]}
    default, ours = (
        " and ".join(f"{load['rate_per_second']:,.0f}" for load in found[name]["loads"])
        for name in (DEFAULT, answer["chosen"])
    )
    gains = [finding["numbers"] for finding in answer["findings"] if finding["names"][1:] == [DEFAULT]]
    ratio = "{rate:.2f} times the rate [{low:.2f}, {high:.2f}]".format(**gains[0]) if gains else "the same"
    show(f"default {default} a second", f"plan {ours}", ratio, answer["decision"])


def saved(folder: Path) -> dict[str, Path]:
    """The networks of the demo, with random weights, as files."""
    sys.path.insert(0, str(Path(__file__).resolve().parent / "bench"))
    import openvino as ov

    import zoo
    from problems import branching, tiny

    networks = {
        "anomaly_detector": tiny.build("anomaly_detection"),
        "tagger": branching.build("bidirectional LSTM/64"),
        "mobilenet_v2": zoo.build("mobilenet_v2", "full"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.xml" for name in networks}
    for name, model in networks.items():
        ov.save_model(model, paths[name], compress_to_fp16=False)
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(), help="where the files go")
    paths = saved(parser.parse_args().folder)
    page = paths["tagger"].with_suffix(".html")

    print("The anomaly detector of MLPerf Tiny: too small to share among threads.")
    latency(paths["anomaly_detector"])
    print("\nA tagger reads a sentence in both directions, and neither direction needs the other.")
    latency(paths["tagger"], "--report", str(page))
    print("\nBoth at once, each called by a thread of its own.")
    at_once(paths["anomaly_detector"], paths["tagger"])
    print("\nMobileNet-V2 as published: OpenVINO's default uses the machine well, and AUTOPLACE keeps it.")
    latency(paths["mobilenet_v2"])

    print(f"\nWhat the tagger did when, on a page: {page.resolve()}")
    print("Next, with a model of yours:")
    print(f"  {PROGRAM} bench model.xml --report page.html     # what would be gained")
    print(f"  {PROGRAM} annotate model.xml                     # decide once, ship the answer")
    print(f"  {PROGRAM} application a.xml b.xml                # several models on this machine")


if __name__ == "__main__":
    main()
