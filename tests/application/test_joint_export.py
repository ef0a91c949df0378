"""How a plan of several models reaches programs that are not ours: what is printed, written and started.

What GenAI and optimum-intel do with it: tests/native and tests/integrations.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openvino as ov
import pytest

from command_line import Command, two_layers
from joint_plans import IN_CALLER, ONE_THREAD, part, saved
from ov_autoplace.application.answer import ApplicationPlan
from ov_autoplace.application.candidates import proposals, rivals
from ov_autoplace.application.export import GENAI, genai_code, model_server_config
from ov_autoplace.application.tables import parts_table
from ov_autoplace.devices.conditions import machine_lines
from ov_autoplace.devices.names import core_with
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.errors import AutoplaceError, PlacementError
from ov_autoplace.graph.model_hash import model_hash
from ov_autoplace.graph.passes import NAMED, formed
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.joint import JointPlan, Part
from ov_autoplace.plan.plan import LanePlan, PoolPlan, SplitPlan, WholePlan

DEFAULT = WholePlan("CPU")
ON_GPU = WholePlan("GPU")
BOTH = WholePlan("AUTO:GPU,CPU")
RESERVED = WholePlan("CPU", properties={"INFERENCE_NUM_THREADS": "2", "ENABLE_CPU_RESERVATION": "YES"})

# Model Server's schema, in its src/schema.cpp: what an entry of model_config_list may have.
SERVER_KEYS = {"name": str, "base_path": str, "target_device": str, "nireq": int, "plugin_config": dict}


def plan_of(*parts: Part, **others: Any) -> ApplicationPlan:
    return ApplicationPlan(JointPlan("by hand", parts, **others))


def at(folder: str, **plans: WholePlan) -> ApplicationPlan:
    return plan_of(*(part(name, plan, f"/{folder}/openvino_model.xml") for name, plan in plans.items()))


class Called:
    """A module ``openvino_genai`` that notes how everything in it is called."""

    def __init__(self, name: str = "") -> None:
        self._name = name

    def __getattr__(self, name: str) -> Called:
        return Called(f"{self._name}.{name}".lstrip("."))

    def __call__(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
        return (self._name, *arguments, named)


def constructed(plan: ApplicationPlan, pipeline: str, **names: str) -> tuple[Any, ...]:
    """The call that the printed program makes of its pipeline: name, arguments and named arguments."""
    scope: dict[str, Any] = {"openvino_genai": Called()}
    exec(genai_code(plan, pipeline, names).replace("import openvino_genai\n", ""), scope)
    made = scope["pipeline"]
    assert isinstance(made, tuple)
    return made


def test_properties_of_a_language_model_reach_no_tokenizer() -> None:
    plan = plan_of(part("language_model", ONE_THREAD, "/llm/openvino_model.xml"))

    own = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "ENABLE_CPU_PINNING": False}
    assert constructed(plan, "llm") == ("LLMPipeline", "/llm", "CPU", {"DEVICE_PROPERTIES": {"CPU": own}})


def test_models_have_the_names_that_the_plan_gives_them() -> None:
    plan = plan_of(
        part("chat", DEFAULT, "/llm/openvino_model.xml"), part("small", ON_GPU, "/small/openvino_model.xml")
    )

    draft = ("draft_model", "/small", "GPU", {})
    names = {"language_model": "chat", "draft_model": "small"}
    assert constructed(plan, "llm", **names) == ("LLMPipeline", "/llm", "CPU", {"draft_model": draft})


def test_models_of_a_pipeline_on_one_device_need_no_auto() -> None:
    plan = plan_of(
        part("language_model", IN_CALLER, "/vlm/openvino_language_model.xml"),
        part("vision_embeddings", DEFAULT, "/vlm/openvino_vision_embeddings_model.xml"),
        part("detector", ON_GPU, "/detector.xml"),
    )

    own = {"language_model": {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 0}}
    assert constructed(plan, "vlm") == ("VLMPipeline", "/vlm", "CPU", {"MODEL_PROPERTIES": own})


def test_models_of_a_pipeline_on_two_devices_have_a_list_of_one_device_each() -> None:
    plan = at("vlm", language_model=ONE_THREAD, vision_embeddings=ON_GPU)

    name, folder, device, named = constructed(plan, "vlm")

    assert (name, folder, device) == ("VLMPipeline", "/vlm", "AUTO")
    lists = {role: own["MULTI_DEVICE_PRIORITIES"] for role, own in named["MODEL_PROPERTIES"].items()}
    assert lists == {"language_model": "CPU", "vision_embeddings": "GPU"}
    assert named["MODEL_PROPERTIES"]["language_model"]["INFERENCE_NUM_THREADS"] == 1


def test_a_path_of_any_characters_is_printed_as_python(tmp_path: Path, cli: Command) -> None:
    folder = 'a "b"\\n\u202ec\u00e4'
    path = saved(tmp_path / "a.plan.json", {"language_model": (DEFAULT, f"/{folder}/openvino_model.xml")})

    scope: dict[str, Any] = {"openvino_genai": Called()}
    printed = cli("application", "export", path, "--genai", "llm").out
    exec(printed.replace("import openvino_genai\n", ""), scope)

    assert scope["pipeline"][1] == f"/{folder}"


@pytest.mark.parametrize(
    ("plan", "pipeline", "names", "told"),
    [
        (at("m", a=DEFAULT), "speech", {}, ["speech", *GENAI]),
        (at("m", a=DEFAULT), "llm", {}, ["language_model", "a"]),
        (at("m", a=DEFAULT), "llm", {"tokenizer": "a"}, ["tokenizer", "draft_model"]),
        (at("m", a=DEFAULT), "llm", {"language_model": "b"}, ["b", "a"]),
        (at("m", encoder=DEFAULT, decoder=ONE_THREAD), "whisper", {}, ["encoder", "decoder"]),
        (at("m", encoder=DEFAULT, decoder=ON_GPU), "whisper", {}, ["encoder", "decoder"]),
        (at("m/unet", unet=DEFAULT), "image", {}, ["/m/model_index.json"]),
        (at("m", encoder=BOTH, decoder=BOTH), "whisper", {}, ["encoder", "AUTO:GPU,CPU"]),
        (plan_of(part("language_model", DEFAULT)), "llm", {}, ["language_model"]),
        (
            plan_of(part("language_model", DEFAULT, "/a/small.xml")),
            "llm",
            {},
            ["/a/small.xml", "openvino_model.xml"],
        ),
        (
            plan_of(
                part("language_model", DEFAULT, "/a/openvino_model.xml"),
                part("text_embeddings", DEFAULT, "/b/openvino_model.xml"),
            ),
            "vlm",
            {},
            ["language_model", "/a", "text_embeddings", "/b"],
        ),
    ],
)
def test_what_a_pipeline_cannot_do_is_refused_with_the_names(
    plan: ApplicationPlan, pipeline: str, names: dict[str, str], told: list[str]
) -> None:
    with pytest.raises(AutoplaceError) as refused:
        genai_code(plan, pipeline, names)

    assert [name for name in told if name not in str(refused.value)] == []


def test_model_server_is_told_all_models_in_the_order_of_the_plan(tmp_path: Path, cli: Command) -> None:
    sources = {"wide": tmp_path / "wide" / "3" / "model.xml", "narrow": tmp_path / "narrow.xml"}
    plans = {"wide": RESERVED, "narrow": WholePlan("GPU.1", properties={"PERFORMANCE_HINT": "LATENCY"})}
    parts = [part(name, plans[name], sources[name], callers=n) for n, name in enumerate(plans, 2)]
    ApplicationPlan(JointPlan("by hand", tuple(parts))).save(tmp_path / "a.plan.json")

    written = tmp_path / "config.json"
    done = cli("application", "export", tmp_path / "a.plan.json", "--model-server", written)

    assert (done.code, done.out) == (0, "")
    file = json.loads(written.read_text(encoding="utf-8"))
    assert file.keys() == {"model_config_list"}
    entries = [entry["config"] for entry in file["model_config_list"] if entry.keys() == {"config"}]
    for entry in entries:
        assert {key: type(value) for key, value in entry.items()} == SERVER_KEYS
        assert {type(value) for value in entry["plugin_config"].values()} <= {int, str, bool}
    # A folder of versions, or one file.
    assert [entry["base_path"] for entry in entries] == [str(tmp_path / "wide"), str(sources["narrow"])]
    assert [(entry["name"], entry["target_device"], entry["nireq"]) for entry in entries] == [
        ("wide", "CPU", 2),
        ("narrow", "GPU.1", 3),
    ]
    assert [entry["plugin_config"] for entry in entries] == [
        {"INFERENCE_NUM_THREADS": 2, "ENABLE_CPU_RESERVATION": True},
        {"PERFORMANCE_HINT": "LATENCY"},
    ]


@pytest.mark.parametrize(
    "plan",
    [
        plan_of(part("a", DEFAULT, "/a.xml"), in_turn=True),
        plan_of(part("a", DEFAULT)),
        plan_of(part("a", LanePlan((), {}, (), ()), "/a.xml")),
        plan_of(part("a", PoolPlan("p", DEFAULT, (DEFAULT, ON_GPU), 2), "/a.xml")),
    ],
    ids=["in turn", "no file", "lanes", "a mixture"],
)
def test_what_model_server_has_no_words_for_is_refused(plan: ApplicationPlan) -> None:
    with pytest.raises(PlacementError):
        model_server_config(plan)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--role", "language_model=a"),
        ("--role", "language_model=a", "--model-server", "config.json"),
        ("--genai", "llm", "--role", "language_model"),
        ("--genai", "nothing"),
        ("--model-server", "a.plan.json"),
        ("--model-server", "."),
    ],
)
def test_a_wrong_export_writes_nothing(
    arguments: tuple[str, ...], tmp_path: Path, cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = saved(tmp_path / "a.plan.json", {"a": (DEFAULT, "/a.xml")})
    before = path.read_bytes()

    done = cli("application", "export", path, *arguments)

    assert (done.code, done.out) == (2, "")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [before]


@pytest.mark.alone
def test_copies_of_a_model_are_streams_in_one_compiled_model() -> None:
    core = core_with()
    pool = PoolPlan("2 x CPU", IN_CALLER, (IN_CALLER, IN_CALLER), 2)

    device, properties = plan_of(part("a", pool)).properties("a")
    compiled = core.compile_model(two_layers([1, 3, 8, 8]), device, properties)

    assert compiled.get_property("NUM_STREAMS") == 2
    assert compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS") == 2
    assert compiled.get_property("ENABLE_CPU_PINNING") is False


def test_the_table_of_a_plan_says_what_other_programs_set() -> None:
    pool = PoolPlan("2 x CPU", IN_CALLER, (IN_CALLER, IN_CALLER), 2)
    answer = plan_of(part("a", pool), part("b", SplitPlan.of({"x": "CPU", "y": "GPU"})))

    said = {row[0]: row[-1] for row in parts_table(answer).rows}
    _, properties = answer.properties("a")
    assert said["a"] == " ".join(f"{key}={value}" for key, value in properties.items())
    assert "NUM_STREAMS=2" in said["a"]
    assert said["b"].startswith("none")
    assert "=" not in said["b"]


# Several processes.

HERE = sorted(os.sched_getaffinity(0))
needs_two = pytest.mark.skipif(len(HERE) < 2, reason="there is one processor, which cannot be divided")


@pytest.fixture
def divided(tmp_path: Path) -> Callable[..., Path]:
    """Writes a plan for this machine whose models have a processor each, and the last one none."""

    def write(digest: str = "", **others: Any) -> Path:
        parts = [
            part(name, IN_CALLER, digest=digest, cores=(n,)) for name, n in zip("ab", HERE, strict=False)
        ]
        parts.append(part("c", IN_CALLER))
        machine = machine_lines(core_with(), ["CPU"])
        plan = plan_of(*parts, **{"machine": machine, "processors": tuple(HERE)} | others)
        plan.save(tmp_path / "a.plan.json")
        return tmp_path / "a.plan.json"

    return write


def started(*command: object) -> subprocess.CompletedProcess[str]:
    ours = [sys.executable, "-m", "ov_autoplace", "application", "run"]
    return subprocess.run(
        [*ours, *map(str, command)], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.alone
@needs_two
def test_each_process_is_on_the_processors_of_its_model(divided: Callable[..., Path]) -> None:
    path = divided()
    for name, processor in zip("ab", HERE, strict=False):
        told = started(path, name, "--", "cat", "/proc/self/status").stdout

        status = dict(line.split(":\t", 1) for line in told.splitlines() if ":\t" in line)
        assert status["Cpus_allowed_list"] == str(processor)
        ignored = int(status["SigIgn"], 16)
        assert not any(ignored >> (number - 1) & 1 for number in (signal.SIGPIPE, signal.SIGXFSZ))


@pytest.mark.alone
@needs_two
def test_the_exit_code_and_all_options_are_the_programs(divided: Callable[..., Path]) -> None:
    done = started(divided(), "a", "--", "sh", "-c", 'echo "$@"; exit 7', "sh", "--json", "--", "--help")

    assert (done.returncode, done.stdout, done.stderr) == (7, "--json -- --help\n", "")


@pytest.mark.alone
@needs_two
@pytest.mark.parametrize("program", ["no-such-program", "", "/"])
def test_a_program_that_cannot_be_started_is_refused_with_a_sentence(
    program: str, divided: Callable[..., Path]
) -> None:
    done = started(divided(), "a", "--", program)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {program!r}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "others", "told"),
    [
        (("a",), {}, "PROGRAM"),
        (("nobody", "--", "true"), {}, "'nobody'"),
        (("c", "--", "true"), {}, "'c'"),
        (("a", "--", "true"), {"machine": ("another CPU",)}, "'another CPU'"),
    ],
)
def test_what_a_plan_does_not_say_is_refused_before_anything_is_started(
    arguments: tuple[str, ...], others: dict[str, Any], told: str, divided: Callable[..., Path], cli: Command
) -> None:
    done = cli("application", "run", divided(**others), *arguments)

    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert told in done.err
    assert sorted(os.sched_getaffinity(0)) == HERE


CONFINED = """
import os, sys
import openvino as ov
import ov_autoplace
plan = ov_autoplace.ApplicationPlan.load(sys.argv[1])
compiled = []
for step in sys.argv[3:]:
    try:
        if step == "compile":
            compiled.append(ov.Core().compile_model(sys.argv[2], "CPU"))
        else:
            plan.confine(step)
    except ov_autoplace.errors.PlacementError as refused:
        print("refused", refused)
print(compiled[0].get_property("INFERENCE_NUM_THREADS"), *sorted(os.sched_getaffinity(0)))
"""


@pytest.mark.alone
@needs_two
@pytest.mark.parametrize(
    ("steps", "refused", "processors"),
    [
        (("a", "a", "compile", "b"), f"refused 'b' runs on processor {HERE[1 % len(HERE)]},", HERE[:1]),
        # OpenVINO looks once at the processors that it may use.
        (("compile", "a"), "refused OpenVINO", HERE),
    ],
    ids=["in time", "too late"],
)
def test_a_process_keeps_itself_on_the_processors_of_a_model(
    steps: tuple[str, ...],
    refused: str,
    processors: list[int],
    tmp_path: Path,
    divided: Callable[..., Path],
) -> None:
    ov.save_model(two_layers([1, 3, 8, 8]), tmp_path / "m.xml")
    given = [sys.executable, "-c", CONFINED, divided(), tmp_path / "m.xml", *steps]

    done = subprocess.run(given, capture_output=True, text=True, timeout=120, check=True)

    sentence, last = done.stdout.splitlines()
    assert sentence.startswith(refused)
    threads, *found = map(int, last.split())
    assert found == processors
    assert (threads == 1) == (len(processors) == 1)


PROGRAM = """
import json, os, sys
import numpy as np
import openvino as ov
import ov_autoplace
compiled = ov.Core().compile_model(sys.argv[1], "AUTOPLACE", {"AUTOPLACE_APPLICATION": sys.argv[2]})
compiled([np.zeros([1, 3, 8, 8], np.float32)])
print(json.dumps([sorted(os.sched_getaffinity(0)), compiled.get_property("NUM_STREAMS")]))
"""


@pytest.mark.alone
@needs_two
def test_a_process_on_its_cores_follows_the_same_plan(tmp_path: Path, divided: Callable[..., Path]) -> None:
    model = two_layers([1, 3, 8, 8])
    ov.save_model(model, tmp_path / "m.xml", compress_to_fp16=False)
    digest = model_hash(formed(core_with().read_model(tmp_path / "m.xml"), NAMED))
    path = divided(digest)

    done = started(path, "b", "--", sys.executable, "-c", PROGRAM, tmp_path / "m.xml", path)

    assert json.loads(done.stdout or "null") == [[HERE[1]], 0], done.stderr


def playing(name: str, *plans: WholePlan | PoolPlan) -> Any:
    """A model of an application that could run by some plans, the first of them the fastest."""
    settings = [
        Candidate(plan.name, plan, times={Load.APPLICATION: [0.001 * (i + 1)]}, cores=1.0)  # type: ignore[dict-item]
        for i, plan in enumerate(plans)
    ]
    return SimpleNamespace(
        name=name,
        settings=settings,
        alone=settings[0],
        callers=1,
        begun=1,
        digest="",
        source="",
        member=SimpleNamespace(properties={}),
        machine=SimpleNamespace(devices=("CPU",)),
        fastest=lambda wanted: next((s for s in settings if wanted(s.plan)), None),
    )


def test_a_plan_of_known_widths_divides_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cores, "of_this_process", lambda: Cores(frozenset(range(4, 8)), tmp_path))
    two = WholePlan("CPU", Width(2))
    pool = PoolPlan("3 x CPU", ONE_THREAD, (ONE_THREAD,) * 3, 3)
    models = [playing("a", DEFAULT, ONE_THREAD, two), playing("b", DEFAULT, ONE_THREAD, two, pool)]

    plans = [joint.plan for joint in (*rivals(models, 4), *proposals(models, 4))]

    seen = set()
    for plan in plans:
        assert isinstance(plan, JointPlan)
        assert plan.processors == (4, 5, 6, 7)
        threads = [sum(m.width.threads for m in p.plan.models if m.width) for p in plan.parts]
        given = [processor for one in plan.parts for processor in one.cores]
        assert len(set(given)) == len(given)
        assert set(given) <= set(plan.processors)
        if given:
            seen.add(tuple(len(one.cores) for one in plan.parts))
        if all(threads):
            assert [len(one.cores) for one in plan.parts] == (threads if sum(threads) <= 4 else [0, 0])
        elif not any("RESERVATION" in str(p.plan.to_json()) for p in plan.parts):
            assert not given
    assert seen == {
        (1, 1),
        (1, 2),
        (2, 1),
        (2, 2),
        (1, 3),
        (3, 1),
    }  # the widest first where they are reserved
