"""The section paced as far as it needs no GPU: its tables of kernels, and what it makes of samples."""

from __future__ import annotations

import pytest

from sections import paced


def test_kernels_of_a_kind_take_the_scaled_median_of_what_was_recorded(tmp_path):
    recorded = tmp_path / "recorded.txt"
    recorded.write_text(
        "# kernel, microseconds\ngemm_tiled_1_0 10\ngemm_ref_2_0 30\ngemm_opt_3_0 20\nsoftmax_gpu_4_0 8\n",
        encoding="utf-8",
    )
    table = paced._table(paced._read(recorded), 0.5)
    assert table.splitlines() == ["gemm_* 10.000", "softmax_* 4.000", "* 2.0"]


def outcome(executor: float, hetero: float, predicted: float) -> dict[str, object]:
    noise = [1.0, 1.01, 0.99, 1.0, 1.0]
    seconds = {"CPU": 0.010, "GPU": 0.011, "executor": executor, "HETERO": hetero}
    return {
        "predicted": {"executor": predicted, "HETERO": hetero},
        "submodels": 3,
        "samples": {who: [value * factor for factor in noise] for who, value in seconds.items()},
    }


@pytest.mark.parametrize(
    ("measured", "missed"),
    [((0.005, 0.0099, 0.0048), 0), ((0.005, 0.0080, 0.0048), 1), ((0.005, 0.0080, 0.0040), 2)],
)
def test_a_result_is_marked_as_emulated_and_says_what_missed_its_bar(measured, missed):
    result = paced._result({"two branches": outcome(*measured)}, speed=1.0, seed=0, failures=["x: failed"])
    assert "emulated" in result.title
    assert "Emulated" in result.tables[0].note
    assert result.cases[0].ratio == pytest.approx(0.5, rel=0.03)
    assert result.cases[0].rival == "CPU"
    assert result.remarks[0] == "x: failed"
    assert sum("MISSED" in remark for remark in result.remarks) == missed
