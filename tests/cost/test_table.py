"""Cost tables: what they accept, and their JSON."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest

from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.table_json import load_table, save_table
from ov_autoplace.errors import CostTableError, OutputError


def make_table(**changes: object) -> CostTable:
    """Three groups a -> b -> c on two devices, and a constant of c that a reads too."""
    values: dict[str, object] = {
        "devices": ("GPU", "CPU"),
        "names": ("a", "b", "c"),
        "op_seconds": np.array([[1e-3, 0.1], [np.inf, 1 / 3], [0.0, 5e-324]]),
        "tensor_producer": np.array([0, 1, 2], dtype=np.int32),
        "tensor_bytes": np.array([4.0, 1e9, 12.0]),
        "tensor_offsets": np.array([0, 2, 3, 4], dtype=np.int32),
        "tensor_consumers": np.array([1, 2, 2, 0], dtype=np.int32),
        "tensor_is_constant": np.array([False, False, True]),
        "tensor_uncuttable": np.array([False, True, False]),
        "transfer_latency": np.array([[0.0, 1e-5], [2e-5, 3e-6]]),
        "transfer_seconds_per_byte": np.array([[0.0, 1e-10], [2e-10, 0.1]]),
        "launch_seconds": np.array([1e-4, 0.0]),
        "mix_seconds": 7e-5,
        "doubt": 1.3,
        "memory_bytes": np.array([1.0, 2.0, 3.0]),
        "memory_capacity": np.array([1e9, np.inf]),
    }
    return CostTable(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"devices": ()}, "at least one device|shape"),
        ({"devices": ("CPU", "CPU")}, "device names must be unique, but 'CPU' stands twice"),
        ({"names": ("a", "b", "a")}, "group names must be unique, but 'a' stands twice"),
        ({"op_seconds": np.zeros((2, 2))}, r"op_seconds must have the shape \[3, 2\], not \[2, 2\]"),
        ({"op_seconds": np.array([[1, 1], [1, np.nan], [1, 1]])}, r"op_seconds\[1, 1\] is nan"),
        ({"op_seconds": -np.ones((3, 2))}, r"op_seconds\[0, 0\] is -1.0; it must be 0 or more"),
        ({"tensor_bytes": np.array([0, np.inf, 0])}, r"tensor_bytes\[1\] is inf; it must be finite"),
        ({"launch_seconds": np.array([0, -1e-9])}, r"launch_seconds\[1\]"),
        ({"mix_seconds": -1e-9}, "mix_seconds is -1e-09; it must be finite and 0 or more"),
        ({"mix_seconds": np.inf}, "mix_seconds is inf"),
        ({"doubt": 0.9}, "doubt is 0.9; it must be finite and 1 or more"),
        ({"tensor_producer": np.array([0, 1, 3])}, r"tensor_producer holds 3; its values lie in 0 .. 2"),
        ({"tensor_producer": np.array([0, 1, 2**32])}, "tensor_producer holds 4294967296"),
        ({"tensor_producer": np.array([0.0, 1.5, 2.0])}, "tensor_producer must hold int64 values"),
        ({"tensor_consumers": np.array([1, 2, 2, -1])}, "tensor_consumers holds -1"),
        ({"tensor_consumers": np.array([0, 2, 2, 0])}, "tensor 0: its producer 'a' is its own consumer"),
        ({"tensor_consumers": np.array([1, 2, 0, 0])}, "producer 'b' is behind its consumer 'a'"),
        ({"tensor_consumers": np.array([1, 1, 2, 0])}, "tensor 0 names its consumer 'b' twice"),
        ({"tensor_offsets": np.array([0, 3, 2, 4])}, "tensor_offsets must rise"),
        ({"tensor_offsets": np.array([0, 2, 3, 3])}, "tensor_offsets must rise"),
        ({"tensor_is_constant": np.zeros(3, dtype=bool)}, "producer 'c' is behind its consumer 'a'"),
        ({"colocation": np.array([0, 0])}, r"colocation must have the shape \[3\]"),
        ({"colocation": np.array([0, 0, -2])}, "colocation holds -2"),
        ({"op_types": ("Relu",)}, r"op_types must have one entry per group \(3\), not 1"),
        ({"members": (("x",), ("y",), ("x",))}, "member ops must be unique, but 'x' stands twice"),
    ],
)
def test_an_inconsistent_table_is_refused_in_one_sentence(change, sentence):
    with pytest.raises(CostTableError, match=sentence) as raised:
        make_table(**change)
    assert "\n" not in str(raised.value)


def test_a_tensor_that_nobody_reads_is_no_contradiction():
    table = make_table(tensor_offsets=np.array([0, 2, 2, 3]), tensor_consumers=np.array([1, 2, 0]))
    assert np.diff(table.tensor_offsets).tolist() == [2, 0, 1]


def test_a_shared_constant_may_stand_behind_its_consumers():
    assert make_table().tensor_is_constant[2]  # of c, read by a


def test_arrays_are_read_only_copies_of_the_documented_type():
    seconds = np.ones((3, 2), dtype=np.float32)
    table = make_table(op_seconds=seconds, tensor_producer=np.array([0, 1, 2], dtype=np.int64))
    seconds[:] = 7
    assert table.op_seconds.dtype == np.float64
    assert table.op_seconds.max() == 1
    assert table.tensor_producer.dtype == np.int32
    with pytest.raises(ValueError, match="read-only"):
        table.op_seconds[0, 0] = 2


@pytest.mark.parametrize(
    "change",
    [
        {},
        {
            "colocation": np.array([-1, 0, 0]),
            "op_types": ("Relu", "If", "Add"),
            "output_shapes": ((1, 3), (), (-1, 7)),
            "members": (("x", "ü"), ("\n\u2028",), ("z",)),
            "source": "profiled",
        },
        {
            "names": (),
            "op_seconds": np.zeros((0, 2)),
            "memory_bytes": np.zeros(0),
            "tensor_producer": np.zeros(0, dtype=np.int32),
            "tensor_bytes": np.zeros(0),
            "tensor_offsets": np.zeros(1, dtype=np.int32),
            "tensor_consumers": np.zeros(0, dtype=np.int32),
            "tensor_is_constant": np.zeros(0, dtype=bool),
            "tensor_uncuttable": np.zeros(0, dtype=bool),
        },
    ],
    ids=["plain", "all optional fields", "empty"],
)
def test_a_table_survives_its_file_bit_by_bit(tmp_path, change):
    table = make_table(**change)
    save_table(table, tmp_path / "table.json")
    again = load_table(tmp_path / "table.json")
    for field in fields(CostTable):
        left, right = getattr(table, field.name), getattr(again, field.name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype
            np.testing.assert_array_equal(left, right, err_msg=field.name)
        else:
            assert left == right, field.name


def test_random_tables_survive_their_file(tmp_path):
    generator = np.random.default_rng(seed=20261120)
    for _ in range(20):
        table = make_table(
            op_seconds=10.0 ** generator.uniform(-300, 300, (3, 2)), tensor_bytes=generator.random(3)
        )
        save_table(table, tmp_path / "table.json")
        again = load_table(tmp_path / "table.json")
        np.testing.assert_array_equal(again.op_seconds, table.op_seconds)
        np.testing.assert_array_equal(again.tensor_bytes, table.tensor_bytes)


def test_a_file_that_contradicts_itself_is_refused_in_one_sentence_that_names_it(tmp_path):
    path = tmp_path / "table.json"
    save_table(make_table(), path)
    whole = path.read_text()
    for change, sentence in (
        (lambda d: d["tensors"][0].update(producer=5), "tensor_producer holds 5"),
        (
            lambda d: d["groups"][1].update(op_type="Relu"),
            "group 0: 'op_type' must be a string, it is missing",
        ),
        (
            lambda d: d["groups"][1].update(op_seconds=[1.0]),
            "group 1: 'op_seconds' must hold 2 numbers, not 1",
        ),
        (lambda d: d.update(transfer_latency=[[0.0, 0.0]]), "'transfer_latency' must hold 2 rows, not 1"),
    ):
        document = json.loads(whole)
        change(document)
        path.write_text(json.dumps(document))
        with pytest.raises(CostTableError, match=sentence) as raised:
            load_table(path)
        assert str(raised.value).startswith(str(path))


def test_a_missing_folder_has_its_own_error(tmp_path):
    with pytest.raises(OutputError, match="missing"):
        save_table(make_table(), tmp_path / "missing" / "table.json")


def test_replace_checks_the_new_table_too():
    with pytest.raises(CostTableError, match="launch_seconds"):
        replace(make_table(), launch_seconds=np.array([np.nan, 0.0]))
