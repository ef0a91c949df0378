"""``ov-autoplace application``: several models on one machine, decided, and run on their own cores."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import print_json, print_sentence, show
from ov_autoplace.cli.examples import epilog
from ov_autoplace.cli.outputs import (
    ReportFile,
    check_distinct,
    check_file,
    check_outputs,
    made_folder,
    save_report,
)
from ov_autoplace.errors import OptionError

__all__ = ["application"]

_DECIDE = "decide"

_PlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN", show_default=False, help="What application decide wrote.")
]


class _Group(TyperGroup):
    """Files alone are to be decided: ``decide`` need not be said."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [_DECIDE, *args]
        return super().parse_args(ctx, args)


application = typer.Typer(cls=_Group, no_args_is_help=True, rich_markup_mode=None)


@application.command(
    _DECIDE,
    short_help="Decide how several models share this machine (need not be said).",
    epilog=epilog("application decide"),
)
def decide(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES",
            show_default=False,
            help="An application as a .json file, or models: one request of each in flight.",
        ),
    ],
    devices: arguments.Devices = None,
    time_budget_ms: Annotated[
        float | None,
        typer.Option("--time-budget-ms", show_default="10,000", help="Milliseconds for the whole decision."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File of the plan.", show_default="NAME.plan.json, here"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of inputs and of arrivals at random.")] = 0,
    processes: Annotated[
        bool,
        typer.Option("--processes", help="Each model gets a process and cores of its own."),
    ] = False,
    report: ReportFile = None,
    as_json: arguments.Json = False,
) -> None:
    """Measure several models at once, beside OpenVINO's settings, and write the best plan.

    The plan compiles all of them in Python, and AUTOPLACE_APPLICATION names it to core.compile_model.
    """
    from ov_autoplace.application.place import place_application
    from ov_autoplace.application.tables import answer_json, parts_table, plans_table
    from ov_autoplace.application.workload import Application

    given = [file for file in files if file.suffix.lower() == ".json"]
    if given and len(files) > 1:
        raise OptionError(f"{given[0]} is an application of its own; give it alone, or models")
    wanted = Application.load_file(files[0]) if given else Application.of_files(files)
    path = output or Path(f"{files[0].stem if given else 'application'}.plan.json")
    check_file(path)
    check_outputs(report)
    sources = [member.source for member in wanted.members.values()]
    models = [Path(source) for source in sources if isinstance(source, (str, os.PathLike))]
    check_distinct([path, report], [*files, *models])
    answer = place_application(wanted, devices, time_budget_ms=time_budget_ms, seed=seed, processes=processes)
    with made_folder(path.parent):
        answer.save(path)
    decision = answer.decision
    assert decision is not None
    if report is not None:
        from ov_autoplace.report.contents import application_contents

        save_report(report, application_contents(", ".join(wanted.members), answer), as_json)
    if as_json:
        print_json({"application": [str(file) for file in files], "file": str(path), **answer_json(answer)})
        return
    show(plans_table(answer))
    show(parts_table(answer))
    print_sentence(f"* {decision.reason}")
    print_sentence(f"decided in {sum(decision.seconds.values()):.1f} s; wrote {path}")


@application.command(
    "export",
    short_help="Say a plan in the words of a program that is not ours.",
    epilog=epilog("application export"),
)
def export(
    plan: _PlanFile,
    genai: Annotated[
        str | None,
        typer.Option(
            metavar="PIPELINE",
            help="Print Python that makes a pipeline of OpenVINO GenAI: llm, vlm, whisper or image.",
        ),
    ] = None,
    roles: Annotated[
        list[str] | None,
        typer.Option(
            "--role",
            metavar="ROLE=NAME",
            help="What a model of that pipeline is called in the plan, if it is not its role. Repeatable.",
        ),
    ] = None,
    model_server: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write OpenVINO Model Server's config.json.")
    ] = None,
) -> None:
    """Say which devices and properties other programs have to give the models of a plan.

    OpenVINO GenAI and Model Server do not know AUTOPLACE. What they cannot tell apart has to run alike.
    """
    from ov_autoplace._base.files import write_text_atomically
    from ov_autoplace.application.answer import ApplicationPlan
    from ov_autoplace.application.export import genai_code, model_server_config

    if genai is None and model_server is None:
        raise OptionError("there is nothing to write; give --genai PIPELINE or --model-server FILE")
    names = dict(_role(text) for text in roles or ())
    if names and genai is None:
        raise OptionError("--role is about a pipeline; give --genai PIPELINE too")
    answer = ApplicationPlan.load(plan)
    code = None if genai is None else genai_code(answer, genai, names)
    if model_server is not None:
        check_file(model_server)
        check_distinct([model_server, plan])
        write_text_atomically(model_server, json.dumps(model_server_config(answer), indent=2) + "\n")
    if code is not None:
        print_sentence(code.rstrip())


@application.command(
    "run", short_help="Start a program on the cores of one model of a plan.", epilog=epilog("application run")
)
def run(
    plan: _PlanFile,
    model: Annotated[str, typer.Argument(metavar="MODEL", show_default=False, help="Its name in the plan.")],
    program: Annotated[
        list[str],
        typer.Argument(metavar="-- PROGRAM [ARGUMENTS]", show_default=False, help="What is started."),
    ],
) -> None:
    """Start a program that stays on the cores of one model, and so out of the way of the plan's others.

    The exit code is the program's.
    """
    from ov_autoplace.application.answer import ApplicationPlan

    ApplicationPlan.load(plan).confine(model)
    for name in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and a program would inherit that
        signal.signal(name, signal.SIG_DFL)
    try:
        os.execvp(program[0], program)
    except (OSError, ValueError) as cause:
        reason = getattr(cause, "strerror", None) or str(cause)
        raise OptionError(f"{program[0]!r} cannot be started: {reason}") from cause


def _role(text: str) -> tuple[str, str]:
    role, _, name = text.partition("=")
    if not role or not name:
        raise OptionError(f"--role {text!r} is not of the form ROLE=NAME")
    return role.strip(), name.strip()
