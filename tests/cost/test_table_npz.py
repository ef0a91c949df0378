"""Cost tables as archives of arrays: they hold what JSON holds, and refuse what is not theirs."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest

from ov_autoplace.cost.table_json import load_table, save_table
from ov_autoplace.errors import CostTableError, OutputError
from random_models import random_model
from random_tables import random_table
from report_tables import layered_table


@pytest.fixture
def archive(tmp_path):
    """A saved table with every optional field that a model's table has."""
    path = tmp_path / "net.npz"
    save_table(layered_table(12, seed=2, members=2), path)
    return path


def changed(path, **arrays):
    """Write an archive anew with other arrays; ``None`` takes one away."""
    with np.load(path, allow_pickle=False) as stored:
        kept = dict(stored)
    kept |= {name.replace("__", "."): value for name, value in arrays.items()}
    np.savez(path, **{name: value for name, value in kept.items() if value is not None})


def head(path, **fields):
    with np.load(path, allow_pickle=False) as stored:
        known = json.loads(stored["head"].tobytes())
    return np.frombuffer(json.dumps(known | fields).encode(), np.uint8)


@pytest.mark.parametrize("seed", [5, 71, 902])
def test_an_archive_says_what_json_says(tmp_path, seed):
    table = random_table(seed, groups=30, devices=3)
    save_table(table, tmp_path / "a.json")
    save_table(table, tmp_path / "a.npz")
    save_table(load_table(tmp_path / "a.npz"), tmp_path / "b.json")
    assert (tmp_path / "b.json").read_text() == (tmp_path / "a.json").read_text()


def test_the_table_of_a_model_keeps_its_wiring_members_and_shapes(tmp_path):
    from ov_autoplace.cost.analytic import analytic_table
    from ov_autoplace.cost.target_json import load_target
    from ov_autoplace.graph.coarsen import coarsen
    from ov_autoplace.graph.extract import extract

    coarse = coarsen(extract(random_model(44)))
    table = analytic_table(coarse, load_target("core-ultra-7-155h"), ("GPU", "CPU"))
    save_table(table, tmp_path / "a.npz")
    again = load_table(tmp_path / "a.npz")
    assert again.members == table.members
    assert again.output_shapes == table.output_shapes
    for name in ("node_group", "node_kind", "tensor_consumers", "bonds", "links"):
        np.testing.assert_array_equal(getattr(again.wiring, name), getattr(table.wiring, name))


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"op_seconds": None}, "'op_seconds' is missing"),
        ({"names__offsets": None}, "'names.offsets' is missing"),
        ({"launch_seconds": np.zeros(2, np.int32)}, "'launch_seconds' must hold float64 values, not int32"),
        ({"op_seconds": np.zeros((3, 2))}, r"op_seconds must have the shape \[12, 2\], not \[3, 2\]"),
        ({"tensor_is_constant": np.full(3, 2, np.uint8)}, "'tensor_is_constant' must be 0 or 1, not 2"),
        ({"names__offsets": np.array([0, 7, 3], np.int64)}, "'names.offsets' must rise from 0 to"),
        ({"names": np.full(2, 0xFF, np.uint8), "names__offsets": np.array([0, 2])}, "'names' is no UTF-8"),
        ({"head": np.frombuffer(b"[" * 9999, np.uint8)}, "'head' does not parse as JSON"),
        ({"head": np.frombuffer(b"{}", np.uint8)}, "does not hold 'ov-autoplace/cost-table-arrays'"),
        ({"op_seconds": np.zeros((12, 2), np.float16)}, "holds values of the type '<f2'"),
        ({"op_seconds": np.asfortranarray(np.ones((12, 2)))}, "is not an array as save_table writes it"),
        ({"output_shapes": np.zeros((2, 2), np.int64)}, "'output_shapes' must have one dimension"),
        ({"op_seconds": np.zeros(())}, "is not an array as save_table writes it"),
    ],
)
def test_a_wrong_archive_is_refused_in_one_sentence_that_names_it(archive, arrays, sentence):
    changed(archive, **arrays)
    with pytest.raises(CostTableError, match=sentence) as raised:
        load_table(archive)
    assert str(raised.value).startswith(str(archive))
    assert len(str(raised.value)) < 300


def test_another_version_is_refused(archive):
    changed(archive, head=head(archive, version=2))
    with pytest.raises(CostTableError, match="version 2"):
        load_table(archive)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("tensor_consumers", -1, "tensor_consumers must name nodes below"),
        ("tensor_producer", 10**6, "tensor_producer must name nodes below"),
        ("tensor_offsets", 3, "tensor_offsets must rise"),
        ("node_group", 10**6, "the wiring names group 1000000"),
        ("node_kind", 9, "node kinds must lie between 0 and 4"),
        ("bonds", None, r"'wiring.bonds' must have rows of 2, not the shape \[3\]"),
        ("node_group", None, r"'wiring.node_group' must have one dimension"),
    ],
)
def test_a_wiring_that_leads_out_of_itself_is_refused(tmp_path, field, value, sentence):
    from ov_autoplace.cost.analytic import analytic_table
    from ov_autoplace.cost.target_json import load_target
    from ov_autoplace.graph.coarsen import coarsen
    from ov_autoplace.graph.extract import extract

    coarse = coarsen(extract(random_model(45)))
    path = tmp_path / "a.npz"
    save_table(analytic_table(coarse, load_target("core-ultra-7-155h"), ("GPU", "CPU")), path)
    with np.load(path) as stored:
        array = stored[f"wiring.{field}"].copy()
    if value is None:
        array = np.zeros(3, np.int32) if array.ndim == 2 else array[:, None]
    else:
        array[0] = value
    changed(path, **{f"wiring__{field}": array})
    with pytest.raises(CostTableError, match=sentence):
        load_table(path)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("unpickled",)


def test_nothing_is_unpickled(archive, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps(Bomb())
    array = io.BytesIO()
    np.save(array, np.array([Bomb()], dtype=object), allow_pickle=True)
    for i, content in enumerate((pickled, array.getvalue())):
        with zipfile.ZipFile(archive, "a") as file:
            file.writestr(f"more{i}.npy", content)
        with pytest.raises(CostTableError, match="is not an array as save_table writes it"):
            load_table(archive)
    archive.write_bytes(pickled)
    with pytest.raises(CostTableError, match="no NumPy archive"):
        load_table(archive)
    assert not (tmp_path / "unpickled").exists()


def test_a_file_cannot_ask_for_more_memory_than_its_own_length(archive):
    claimed = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        claimed, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10**5)}
    )
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr("more.npy", claimed.getvalue())
    with pytest.raises(CostTableError, match="holds 0 bytes; its shape needs 8000"):
        load_table(archive)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("names.npy", bytes(10**7))
    with pytest.raises(CostTableError, match="longer than the file"):
        load_table(archive)


def test_compressed_archives_are_refused(archive):
    with np.load(archive) as stored:
        kept = dict(stored)
    random = np.random.default_rng(0).integers(0, 256, 10**5, dtype=np.uint8)
    np.savez_compressed(archive, **kept, random=random)
    with pytest.raises(CostTableError, match=r"compressed or encrypted|longer than the file"):
        load_table(archive)


def test_a_truncated_archive_is_refused_wherever_it_breaks_off(archive):
    whole = archive.read_bytes()
    for length in range(0, len(whole) - 1, 97):
        archive.write_bytes(whole[:length])
        with pytest.raises(CostTableError, match=r"net\.npz"):
            load_table(archive)


def test_a_damaged_archive_is_refused_or_reads_as_it_was(archive):
    whole, names = archive.read_bytes(), load_table(archive).names
    random = np.random.default_rng(20261123)
    refused = 0
    for _ in range(300):
        damaged = bytearray(whole)
        for at in random.integers(0, len(whole), 3):
            damaged[at] ^= 1 << int(random.integers(8))
        archive.write_bytes(damaged)
        try:
            found = load_table(archive).names
        except CostTableError:
            refused += 1
        else:
            assert found == names
    assert refused > 250


def test_an_array_that_is_there_twice_is_refused(archive):
    with zipfile.ZipFile(archive, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr("op_seconds.npy", b"")
    with pytest.raises(CostTableError, match="two entries have one name"):
        load_table(archive)


def test_missing_files_and_folders_have_their_own_errors(tmp_path):
    with pytest.raises(CostTableError, match=r"cannot read a cost table from .*nowhere\.npz"):
        load_table(tmp_path / "nowhere.npz")
    with pytest.raises(OutputError, match="missing"):
        save_table(random_table(1), tmp_path / "missing" / "a.npz")
