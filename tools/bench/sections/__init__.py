"""The sections of the suite: which there are, what they need, and how each is called.

A section is a file of this folder with ``run(quick, seed, ...) -> Result`` and a line below. What else
``run`` takes are its options, with defaults, which ``suite.py --with`` sets.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, get_args, get_origin

from harness.result import Result


@dataclass(frozen=True, slots=True)
class Section:
    """How a section is called.

    Attributes:
        module: A file of this folder.
        fixed: Arguments of its ``run`` that make it this section.
        needs_gpu: Whether it needs a GPU, which may be virtual.
        accepted: Whether it is part of a whole run, and so of ``benchmarks.json``.
    """

    module: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    needs_gpu: bool = False
    accepted: bool = False

    @property
    def run(self) -> Any:
        """Its function."""
        return import_module(f"{__name__}.{self.module}").run


SECTIONS = {
    "width": Section("answers", {"contest": "width"}, accepted=True),
    "overlap": Section("answers", {"contest": "overlap"}, accepted=True),
    "applications": Section("applications", accepted=True),
    "application-rates": Section("application_rates", accepted=True),
    "latency-alias": Section("answers", {"contest": "latency-alias"}, accepted=True),
    "mixes": Section("answers", {"contest": "mixes"}, needs_gpu=True, accepted=True),
    "rate": Section("answers", {"contest": "rate"}, accepted=True),
    "starts": Section("starts", accepted=True),
    "accuracy": Section("accuracy", accepted=True),
    "costs": Section("costs", accepted=True),
    "placement": Section("placement", accepted=True),
    "gate": Section("gate", accepted=True),
    "latency-gpu": Section("answers", {"contest": "latency-gpu"}, needs_gpu=True),
    "scaling": Section("scaling"),
    "overhead": Section("overhead"),
    "power": Section("power"),
    "quota": Section("quota"),
    "xrbench": Section("xrbench"),
    "application-processes": Section("application_processes"),
    "application-predictions": Section("application_predictions"),
    "language-model": Section("language_model"),
    "paced": Section("paced", needs_gpu=True),
    "compilation": Section("compilation"),
    "simulation": Section("simulation"),
    "solvers": Section("solvers"),
    "rivals": Section("rivals"),
    "finetune-gpu": Section("finetune", {"pair": "gpu"}, needs_gpu=True),
    "finetune-lanes": Section("finetune", {"pair": "cpu"}),
}
"""In the order in which they run."""

ACCEPTED = tuple(name for name, section in SECTIONS.items() if section.accepted)


def call(section: str, quick: bool, seed: int, options: Mapping[str, Any], command: str) -> dict[str, Any]:
    """Run a section in this process; its result for JSON."""
    chosen = SECTIONS[section]
    result: Result = chosen.run(quick=quick, seed=seed, **chosen.fixed, **options)
    return replace(result, command=command).to_dict()


def options_of(section: str, pairs: Sequence[str]) -> dict[str, Any]:
    """The options of a section from texts ``name=value``; values of lists have commas between them.

    Raises:
        ValueError: The section has no such option, or the value is none of its kind.
    """
    parameters = inspect.signature(SECTIONS[section].run, eval_str=True).parameters
    known = [name for name in parameters if name not in ("quick", "seed", *SECTIONS[section].fixed)]
    options = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        if name not in known:
            raise ValueError(f"{section} has no option {name!r}; it has {', '.join(known) or 'none'}")
        options[name] = _value(text, parameters[name].annotation)
    return options


def _value(text: str, kind: Any) -> Any:
    if get_origin(kind) is tuple:
        return [_value(part, get_args(kind)[0]) for part in text.split(",") if part]
    return kind(text) if kind in (int, float) else text
