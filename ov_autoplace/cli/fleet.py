"""``ov-autoplace fleet``: what the commands for one machine do, on machines somewhere on the network."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from ov_autoplace._base.text import counted
from ov_autoplace.cli import arguments, fleet_annotate, fleet_calibrate, fleet_collect
from ov_autoplace.cli.console import print_json, print_sentence, print_table
from ov_autoplace.cli.examples import epilog
from ov_autoplace.cli.fleet_options import Address, member_values

__all__ = ["fleet"]

fleet = typer.Typer(
    help="The same on machines that are somewhere on the network, joined by Ray.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@fleet.command(
    "devices",
    short_help="Which machines there are, of which kinds, with which devices.",
    epilog=epilog("fleet devices"),
)
def devices(
    ray: Address,
    facts: Annotated[
        bool, typer.Option("--facts", help="Say of each kind what its machines have in common.")
    ] = False,
    as_json: arguments.Json = False,
) -> None:
    """The machines of a cluster: their kinds, their devices, and why some cannot be measured on.

    A kind is what makes measurements comparable: processor and its cores, devices with their full names,
    plugin builds, drivers and properties, and the releases of OpenVINO and ov-autoplace.
    """
    from ov_autoplace.fleet.connection import connected
    from ov_autoplace.fleet.members import Fleet

    with connected(ray):
        members = Fleet().members()
    kinds = {member.kind.name: member.kind for member in members if member.kind is not None}
    if as_json:
        print_json(
            {
                "cluster": ray,
                "kinds": [
                    {
                        "kind": kind.name,
                        "devices": list(kind.devices),
                        "facts": list(kind.facts),
                        "machines": [
                            m.machine for m in members if m.kind is not None and m.kind.name == name
                        ],
                    }
                    for name, kind in sorted(kinds.items())
                ],
                "machines": [member_values(member) for member in members],
            }
        )
        return
    print_table(
        f"{counted(len(members), 'machine')} of {counted(len(kinds), 'kind')} at {ray}",
        ("machine", "address", "kind", "~devices", "~problem"),
        [
            (
                m.machine,
                m.node.address,
                None if m.kind is None else m.kind.name,
                None if m.kind is None else ", ".join(f"{d} ({m.full_names[d]})" for d in m.kind.devices),
                m.problem or None,
            )
            for m in members
        ],
    )
    for name, kind in sorted(kinds.items()) if facts else ():
        print_sentence(f"{name}:")
        for fact in kind.facts:
            print_sentence(f"  {fact}")


@fleet.command(
    "join", short_help="Let this machine be measured on by a cluster.", epilog=epilog("fleet join")
)
def join(
    address: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS", show_default=False, help="HOST:PORT of the head of the Ray cluster."
        ),
    ],
    devices: arguments.Devices = None,
    name: Annotated[str, typer.Option(help="What to call this machine.", show_default="its host name")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say which command of Ray's does it.")
    ] = False,
    as_json: arguments.Json = False,
) -> None:
    """Start Ray on this machine so that it offers its OpenVINO devices to a cluster; `ray stop` ends that."""
    from ov_autoplace.fleet.joining import join as start
    from ov_autoplace.fleet.joining import joining_command

    command, names = joining_command(address, devices, name)
    if not dry_run:
        start(command)
    if as_json:
        print_json({"cluster": address, "devices": list(names), "command": command, "joined": not dry_run})
        return
    print_sentence(shlex.join(command))
    if not dry_run:
        print_sentence(
            f"this machine offers {', '.join(names)} to the cluster at {address}; end it with: ray stop"
        )


fleet.command(
    "calibrate", short_help="A target profile for each kind of machine.", epilog=epilog("fleet calibrate")
)(fleet_calibrate.calibrate)
fleet.command(
    "annotate",
    short_help="Decide for each kind of machine, and write its annotated model.",
    epilog=epilog("fleet annotate"),
)(fleet_annotate.annotate)
fleet.command(
    "collect",
    short_help="What operations cost on each kind of machine, to learn from.",
    epilog=epilog("fleet collect"),
)(fleet_collect.collect)
