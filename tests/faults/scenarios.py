"""Commands that write, as small as they can be: each is called in a process of its own and leaves by itself.

What a scenario needs is made by :func:`prepare`, in a folder where no faults are injected.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from collected import NETWORKS, samples_of
from command_line import two_layers
from ov_autoplace.cli import main

__all__ = ["SCENARIOS", "prepare"]


def prepare(given: Path) -> None:
    """Make the inputs of all scenarios."""
    given.mkdir()
    model = two_layers([1, 3, 16, 16])
    ops = [op.get_friendly_name() for op in model.get_ordered_ops()]
    for number in range(2):
        ov.save_model(model, given / f"net{number}.xml", compress_to_fp16=False)
        weights = given / f"net{number}.bin"
        (np.fromfile(weights, np.float32) * (1.0 + number)).astype(np.float32).tofile(weights)
        (given / f"{number}.json").write_text(json.dumps(dict.fromkeys(ops, ("CPU", "XCPU")[number])))
    samples_of(NETWORKS).save(given / "costs.npz")


def annotate(given: Path, root: Path, number: int = 1) -> int:
    """An affinity file and an annotated model, in place of older ones."""
    arguments = ["--affinity", given / f"{number}.json", "--devices", "CPU,XCPU", "--output", root / "out"]
    return main(["annotate", str(given / f"net{number}.xml"), *map(str, arguments)])


def older_annotation(given: Path, root: Path) -> int:
    """What :func:`annotate` replaces: the same names, another model on another device."""
    code = annotate(given, root, 0)
    for path in (root / "out").iterdir():
        path.rename(path.with_name(path.name.replace("net0", "net1")))
    return code


def profile(given: Path, root: Path) -> int:
    """A model compiled to be timed, from a copy among the temporary files."""
    from ov_autoplace.errors import AutoplaceError
    from ov_autoplace.measure.session import ProfilingSession

    try:
        with ProfilingSession(None, ov.Core().read_model(given / "net1.xml"), ["CPU"]) as session:
            session.compile_device("CPU").run(2)
    except AutoplaceError as error:
        print(f"error: {error}")
        return error.exit_code
    return 0


def calibrate(given: Path, root: Path) -> int:
    """A target profile from few micro-benchmarks."""
    from ov_autoplace.measure import calibrate as module

    with pytest.MonkeyPatch.context() as patch:
        every = module.benchmarks
        first = {}
        for benchmark in every(quantized=False, quick=True):
            first.setdefault(benchmark.op_class, benchmark)
        patch.setattr(module, "benchmarks", lambda **_: list(first.values()))
        return main(["calibrate", "--quick", "--devices", "CPU", "--output", str(root / "here.json")])


def cache(given: Path, root: Path) -> int:
    """A compiled model whose decision is kept."""
    from ov_autoplace.plan.placement import Placement
    from ov_autoplace.plugin.decision_cache import DecisionCache

    placement = Placement.load(given / "1.json")
    entry = DecisionCache(root / "cache" / "autoplace-0.json", placement.devices)
    entry.store(placement)
    return int(entry.load(placement.names) is None)


def tuned_checkpoint(given: Path, root: Path) -> int:
    """The first save of a fine-tuning run, whose next start goes on in one way or the other."""
    import torch

    from ov_autoplace.errors import AutoplaceError, TrainingError
    from ov_autoplace.policy.card import load_card
    from ov_autoplace.policy.config import CONFIGS
    from ov_autoplace.policy.networks.checkpoint import save_checkpoint
    from ov_autoplace.policy.networks.network import make_network
    from ov_autoplace.training.finetuning.files import TuningFolder
    from ov_autoplace.training.state import load_training, training_bytes

    network = make_network(replace(CONFIGS["hsdag"], hidden=4, layers=1), 0)
    optimizer = torch.optim.AdamW(network.parameters(), 0.1)
    try:
        try:
            folder = TuningFolder(root / "tuned", resume=False)
        except TrainingError as error:
            if "resume" not in str(error):
                raise
            folder = TuningFolder(root / "tuned", resume=True)
        folder.create()
        if folder.resumed:
            load_training(folder.state, network, optimizer, torch.Generator(), {})
            load_card(folder.path)
        state = training_bytes(network, optimizer, torch.Generator(), {"step": 1}, {})
        save_checkpoint(folder.path, network, {}, {}, {folder.state.name: state})
        folder.close()
    except AutoplaceError as error:
        print(f"error: {error}")
        return error.exit_code
    return 0


def pretrain(given: Path, root: Path) -> int:
    """A network of costs, from a file of measurements."""
    few = ("--epochs", "1", "--hidden", "4", "--layers", "1", "--threads", "1")
    return main(["pretrain", str(given / "costs.npz"), "-o", str(root / "trained" / "costs.npz"), *few])


SCENARIOS: dict[str, Callable[[Path, Path], int]] = {
    "annotate": annotate,
    "older_annotation": older_annotation,
    "profile": profile,
    "calibrate": calibrate,
    "cache": cache,
    "tuned_checkpoint": tuned_checkpoint,
    "pretrain": pretrain,
}
