"""The entry of the suite, with sections that are made up."""

from __future__ import annotations

import inspect
import json

import pytest
from bench_results import result_of

import suite
from harness import ROOT, environment
from harness.process import CACHE_VARIABLE, Failure
from harness.result import exact_ratio
from sections import ACCEPTED, SECTIONS, options_of


@pytest.fixture
def sections_answer(monkeypatch, tmp_path):
    """Sections answer at once: with the result or failure that the returned dictionary holds."""
    answers: dict[str, object] = {}

    def in_child(function, arguments, variables=None):
        name = arguments["section"]
        return answers.get(name, result_of(exact_ratio(name, 1.0, 1)).to_dict())

    monkeypatch.setattr(suite, "in_child", in_child)
    monkeypatch.setattr(suite, "_CACHE", tmp_path / "cache")
    monkeypatch.setattr(suite, "gpu_variables", lambda file: {})
    monkeypatch.setenv(CACHE_VARIABLE, "")
    return answers


def written(folder) -> dict:
    return json.loads((folder / "benchmarks.json").read_text())


def test_the_whole_suite_writes_every_section_in_order(sections_answer, tmp_path):
    suite.main(["--quick", "--seed", "3", "--output", str(tmp_path)])
    document = written(tmp_path)
    assert list(document["sections"]) == list(ACCEPTED)
    assert document["head"]["command"].startswith("python tools/bench/suite.py --quick --seed 3")
    for section in document["sections"].values():
        assert section["extent"] == "quick, seed 3"
        assert section["commit"]
        assert section["machine"]
    assert (tmp_path / "BENCHMARKS.md").read_text().count("\n## ") == len(ACCEPTED)


def test_the_json_has_a_line_per_section(sections_answer, tmp_path):
    suite.main(["--output", str(tmp_path)])
    lines = (tmp_path / "benchmarks.json").read_text().splitlines()
    assert [line.split(":")[0] for line in lines if line.startswith('"')] == [
        f'"{name}"' for name in ACCEPTED
    ]


def test_no_folder_of_the_machine_is_published(sections_answer, tmp_path):
    sections_answer["scaling"] = Failure(f"cannot read {suite.ROOT / 'models' / 'policy'}")
    with pytest.raises(SystemExit):
        suite.main(["--output", str(tmp_path)])
    for name in ("benchmarks.json", "BENCHMARKS.md"):
        text = (tmp_path / name).read_text()
        assert "cannot read models/policy" in text
        assert str(suite.ROOT) not in text


def test_a_section_that_fails_does_not_lose_the_others(sections_answer, tmp_path):
    sections_answer["scaling"] = Failure("died by SIGSEGV")
    with pytest.raises(SystemExit, match="scaling"):
        suite.main(["--output", str(tmp_path)])
    sections = written(tmp_path)["sections"]
    assert sections["scaling"]["failure"] == "died by SIGSEGV"
    assert all("result" in section for name, section in sections.items() if name != "scaling")


def test_sections_that_are_not_run_keep_what_they_were(sections_answer, tmp_path):
    suite.main(["--seed", "1", "--output", str(tmp_path)])
    suite.main(["--seed", "2", "--sections", "power,gate", "--output", str(tmp_path)])
    extents = {name: section["extent"] for name, section in written(tmp_path)["sections"].items()}
    assert extents["power"] == extents["gate"] == "whole, seed 2"
    assert extents["placement"] == "whole, seed 1"


def test_an_unknown_section_is_refused_with_the_known_ones(sections_answer, tmp_path, capsys):
    with pytest.raises(SystemExit):
        suite.main(["--sections", "powr", "--output", str(tmp_path)])
    assert "there is no section powr; there are placement" in capsys.readouterr().err


def test_without_a_gpu_its_sections_say_so(sections_answer, monkeypatch, tmp_path):
    monkeypatch.setattr(suite, "gpu_variables", lambda file: Failure("there is no GPU here"))
    with pytest.raises(SystemExit, match="latency-gpu, mixes"):
        suite.main(["--output", str(tmp_path)])
    assert written(tmp_path)["sections"]["mixes"]["failure"] == "there is no GPU here"


def test_a_missing_file_of_variables_is_told_with_the_remedy(tmp_path):
    found = environment.gpu_variables(tmp_path / "env")
    assert isinstance(found, Failure)
    assert "tools/virtual_gpu/install.py" in found.reason


def test_variables_are_read_as_a_shell_reads_them(tmp_path, monkeypatch):
    monkeypatch.setenv("OV_AUTOPLACE_TEST_PATH", "/b")
    script = (
        "export OV_AUTOPLACE_TEST_PATH='/a'\"${OV_AUTOPLACE_TEST_PATH:+:$OV_AUTOPLACE_TEST_PATH}\"\n"
        "export OV_AUTOPLACE_TEST_DRIVER='/with space'\n"
    )
    file = tmp_path / "env"
    file.write_text(script)
    assert environment._read(file) == {
        "OV_AUTOPLACE_TEST_PATH": "/a:/b",
        "OV_AUTOPLACE_TEST_DRIVER": "/with space",
    }


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_can_be_called_with_extent_and_seed_and_its_options_have_defaults(name):
    section = SECTIONS[name]
    inspect.signature(section.run).bind(quick=True, seed=0, **section.fixed)


def test_options_are_read_by_their_kinds():
    found = options_of("accuracy", ["models=unet,lstm_lm", "size=small", "placements=3"])
    assert found == {"models": ["unet", "lstm_lm"], "size": "small", "placements": 3}
    assert options_of("latency-alias", ["rivals="]) == {"rivals": []}
    assert options_of("scaling", ["sizes=100,300"]) == {"sizes": [100, 300]}


@pytest.mark.parametrize("option", ["pair=gpu", "nosuch=1", "seed=2"])
def test_an_option_that_a_section_does_not_have_is_refused_with_those_that_it_has(option, capsys):
    with pytest.raises(SystemExit):
        suite.main(["--sections", "latency-alias", "--with", option])
    name = option.partition("=")[0]
    assert f"latency-alias has no option '{name}'; it has models, modes, rivals" in capsys.readouterr().err


def test_a_section_with_options_says_so_and_leaves_the_published_files_alone(sections_answer, tmp_path):
    suite.main(["--sections", "accuracy", "--with", "size=small", "placements=3"])
    (record,) = written(tmp_path / "cache" / "results")["sections"].values()
    assert record["extent"] == "whole, seed 0, size=small, placements=3"


def test_a_whole_run_has_the_sections_that_are_accepted():
    published = json.loads((ROOT / "benchmarks.json").read_text())["sections"]
    assert list(published) == list(ACCEPTED)


@pytest.mark.parametrize("look", [["--quick", "--sections", "gate"], ["--sections", "solvers"]])
def test_a_look_at_single_sections_leaves_the_published_files_alone(sections_answer, tmp_path, look):
    suite.main(look)
    assert list(written(tmp_path / "cache" / "results")["sections"]) == [look[-1]]


def test_no_section_measures_a_paced_gpu_by_accident(monkeypatch, tmp_path):
    monkeypatch.setenv("VIRTUAL_GPU_PACED", "factor:2")
    found = environment.gpu_variables(tmp_path / "env")
    assert isinstance(found, Failure)
    assert "VIRTUAL_GPU_PACED is set" in found.reason
