"""What is said of measurements and predictions that disagree."""

from __future__ import annotations

from ov_autoplace.explain.candidates import (
    CandidateRow,
    Measured,
    answer_facts,
    measured_answer,
    measured_apart,
    prediction_alone,
)


def row(
    name: str, measured: float | None = None, predicted: float | None = None, **fields: object
) -> CandidateRow:
    """Milliseconds, with an interval of 1 % to each side."""
    found = None if measured is None else Measured(measured * 1e-3, measured * 0.99e-3, measured * 1.01e-3)
    seconds = None if predicted is None else predicted * 1e-3
    return CandidateRow(name, predicted=seconds, measured=found, **fields)  # type: ignore[arg-type]


def test_the_answer_is_compared_with_the_fastest_other() -> None:
    others = [row("GPU", 3.0), row("CPU", 2.0), row("NPU")]

    assert measured_answer([*others, row("AUTOPLACE", 1.0, chosen=True)]) == (
        "measured here: AUTOPLACE 1.000 ms, 50.0 % faster than CPU, 2.000 ms"
    )
    assert measured_answer([*others, row("AUTOPLACE", 2.5, chosen=True)]) == (
        "measured here: AUTOPLACE 2.500 ms, 25.0 % slower than CPU, 2.000 ms"
    )
    assert measured_answer([*others, row("AUTOPLACE", 2.01, chosen=True)]).endswith("too close to tell apart")
    assert measured_answer([*others, row("AUTOPLACE", chosen=True)]) == ""


def test_predictions_that_a_measurement_refuted_are_named() -> None:
    answer = row("CPU", 1.0, 1.2, chosen=True)

    assert prediction_alone([answer, row("GPU", 1.1, 1.0)]).startswith(
        "By prediction alone, GPU (1.000 ms) would have been taken before CPU (1.200 ms)"
    )
    assert prediction_alone([answer, row("GPU", 1.1, 1.3)]) == ""
    assert prediction_alone([answer, row("GPU", None, 1.0)]) == ""  # nobody knows
    assert prediction_alone([answer, row("GPU", 0.9, 1.0)]) == ""  # the measurement says the same


def test_medians_that_were_not_measured_in_turns_are_no_comparison() -> None:
    answer = row("CPU", 2.0, chosen=True, samples=12)

    assert measured_apart([answer, row("GPU", 1.0, samples=300)]) == (
        "GPU has a lower median (1.000 ms), but was not measured in turns with CPU (300 samples and 12), "
        "and that is no comparison."
    )
    assert measured_apart([answer, row("GPU", 1.0, samples=12)]) == ""
    assert measured_apart([answer, row("GPU", 3.0, samples=300)]) == ""


def test_the_head_of_the_page_says_what_was_measured_before_what_is_predicted() -> None:
    assert list(answer_facts([row("CPU", 2.0, 3.0, chosen=True)], 9.0)) == [
        ("measured", "2.000 ± 0.020 ms"),
        ("predicted", "3.000 ms, 50 % more than measured"),
    ]
    assert list(answer_facts([row("CPU", None, 3.0, chosen=True)], 9e-3)) == [
        ("measured", "it was not run"),
        ("predicted", "3.000 ms"),
    ]
