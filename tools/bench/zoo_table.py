"""Every model annotated, compiled on AUTOPLACE and compared with one device: sizes and largest errors.

Beside AUTOPLACE's own answer, which may be one device, a random mix of both devices is compiled, so
that the hand-overs are exercised on every model.
"""

from __future__ import annotations

import argparse
import sys
import time

import openvino as ov
from common import machine_line, print_table, unequal_pair
from model_set import chosen_models

import ov_autoplace
from model_checks import open_shapes, outputs_of, random_inputs, random_regions, relative_error
from ov_autoplace.graph.coarsen import coarsen

DEVICES = ("XCPU", "CPU")
PAIR = f"AUTOPLACE:{','.join(DEVICES)}"
F32 = {"INFERENCE_PRECISION_HINT": "f32"}
BAR = 1e-4
REGIONS = 4


def check(model: ov.Model, mode: str) -> tuple[float, list[object]]:
    """The largest error of both placements, and the cells of the table."""
    core = unequal_pair()
    inputs = random_inputs(model, seed=0)
    shapes = open_shapes(model, inputs)
    expected = outputs_of(core.compile_model(model, "CPU", F32), inputs)
    graph = ov_autoplace.extract(model, shapes)

    start = time.perf_counter()
    placement = ov_autoplace.place(model, DEVICES, mode, core, shapes=shapes, properties=F32)
    seconds = time.perf_counter() - start
    answers = {"answer": placement.to_dict(), "mix": random_regions(model, DEVICES, REGIONS, 7, shapes)}
    errors, subgraphs = [], 1
    for device_of in answers.values():
        annotated = model.clone()
        ov_autoplace.annotate(annotated, device_of)
        compiled = core.compile_model(annotated, PAIR, F32)
        errors.append(relative_error(outputs_of(compiled, inputs), expected))
        if len(set(device_of.values())) > 1:
            subgraphs = compiled.get_property("HETERO_NUMBER_OF_SUBMODELS")
    chosen = placement.decision.chosen if placement.decision else placement.solver
    cells = [len(graph), graph.num_edges, len(coarsen(graph)), f"{seconds:.1f}", chosen]
    return max(errors), [*cells, f"{errors[0]:.1e}", f"{errors[1]:.1e}", subgraphs]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=[], help="parts of model names; all when left out")
    parser.add_argument("--mode", default="PROFILE", choices=("ZERO_SHOT", "PROFILE", "TUNE"))
    arguments = parser.parse_args()
    rows, errors = [], []
    for name, model in chosen_models(arguments.models):
        error, cells = check(model, arguments.mode)
        errors.append(error)
        print(name, *cells, file=sys.stderr, flush=True)  # the table comes at the end, after minutes
        rows.append([name, *cells, "yes" if error <= BAR else "NO"])
    print(machine_line())
    within = sum(error <= BAR for error in errors)
    print_table(
        f"{arguments.mode}: {within} of {len(errors)} models give one device's outputs within {BAR:g}",
        (
            "model",
            "ops",
            "edges",
            "groups",
            "place s",
            "chosen",
            "error",
            "error of mix",
            "subgraphs of mix",
            "in",
        ),
        rows,
    )


if __name__ == "__main__":
    main()
