"""Tables on terminals of any width, and in pipes: nothing is wider than the terminal, and rows stay short."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ov_autoplace.cli.console import print_table
from ov_autoplace.cli.tables import shortened

HEADINGS = ("group", "?type", ">?ops", "device", ">GPU ms", ">CPU ms", "~why")
WHY = "stays with its neighbours: alone on CPU, the model takes 0.160 ms more"


def op_names(rng: np.random.Generator, count: int) -> list[str]:
    """As frameworks name them: long, alike at both ends."""
    layers = rng.permutation(60)[:count]
    part = rng.choice(["attention.self.query", "ffn.output.dense", "conv_dw"], count)
    return [f"__module.encoder.layer.{n}.{p}/aten::linear/MatMul" for n, p in zip(layers, part, strict=True)]


def rows_of(names: list[str]) -> list[tuple[object, ...]]:
    return [(name, "MatMul", 1009, "GPU", "0.081", None, WHY) for name in names]


def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int | None) -> str:
    if width is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(width))
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [120, 80, 60, 40])
@pytest.mark.seeds(3)
def test_no_line_is_wider_than_the_terminal_and_no_row_is_tall(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int, seed: int
) -> None:
    print(f"seed {seed}")
    names = op_names(np.random.default_rng(seed), 12)
    printed(monkeypatch, capsys, width)
    print_table("Groups", HEADINGS, rows_of(names))
    lines = printed(monkeypatch, capsys, width).splitlines()

    assert max(map(len, lines)) <= width
    in_table = [line for line in lines if line.startswith("│")]
    assert len(in_table) <= 3 * len(names)
    assert sum("0.081" in line for line in lines) == len(names)


@pytest.mark.parametrize("width", [120, 80, 60, 40])
def test_sentences_without_room_are_printed_whole_below(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    names = op_names(np.random.default_rng(5), 4)
    printed(monkeypatch, capsys, width)
    print_table("Groups", HEADINGS, rows_of(names))
    text = " ".join(re.sub(r"[│┃]", " ", printed(monkeypatch, capsys, width)).split())

    if width > 80:  # there is room in the table, where lines of other cells stand between its words
        assert text.count("neighbours") == len(names)
    else:
        assert text.count(WHY) == len(names)


def test_a_pipe_gets_every_name_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [name * 3 for name in op_names(np.random.default_rng(6), 4)]
    printed(monkeypatch, capsys, None)
    print_table("Groups", HEADINGS, rows_of(names))
    lines = printed(monkeypatch, capsys, None).splitlines()

    for name in names:
        assert sum(name in line for line in lines) >= 1
    assert not any("…" in line for line in lines)


def test_a_pipe_gets_every_column(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed(monkeypatch, capsys, None)
    devices = [f"GPU.{n}" for n in range(24)]
    print_table(
        "Groups", ("group", "?type", *(f">{d} ms" for d in devices)), [("conv", "Convolution", *devices)]
    )
    text = printed(monkeypatch, capsys, None)

    assert "Convolution" in text
    assert all(device in text for device in devices)
    assert len(text.splitlines()) <= 7


@pytest.mark.parametrize("width", [16, 24, 40])
@pytest.mark.seeds(5)
def test_shortened_names_stay_distinct_where_three_lines_suffice(width: int, seed: int) -> None:
    print(f"seed {seed}")
    names = op_names(np.random.default_rng(seed), 20)
    found = shortened(names, width)

    assert len(set(found)) == len(names)
    assert all(len(name) <= 3 * width for name in found)


def test_names_that_fit_are_left_alone() -> None:
    assert shortened(["conv1", "conv2"], 8) == ["conv1", "conv2"]
    assert shortened([], 8) == []
    assert shortened(["model/layers/MatMul"], 12) == ["mod…s/MatMul"]


def test_where_only_names_would_be_left_each_row_is_a_list(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    sentence = "words " * 20 + "end"
    print_table("What differs", ("", "~A", "~B"), [("decision", sentence, sentence), ("mode", "fast", "")])
    out = capsys.readouterr().out
    assert "┃" not in out
    assert out.split().count("end") == 2
    order = [out.index(word) for word in ("decision", "A: words", "B: words", "mode", "A: fast")]
    assert order == sorted(order)


@pytest.mark.parametrize("width", [80, 77])
def test_what_goes_on_below_a_table_is_indented(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    names = op_names(np.random.default_rng(7), 4)
    printed(monkeypatch, capsys, width)
    print_table("Groups", HEADINGS, rows_of(names))
    below = printed(monkeypatch, capsys, width).split("why\n")[1].splitlines()

    assert len(below) > len(names)  # some go on
    for line in below:
        starts = any(line.startswith(f"  {name}: ") for name in names)
        assert len(line) - len(line.lstrip()) == (2 if starts else 4)
