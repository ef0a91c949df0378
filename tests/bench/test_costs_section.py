"""The section on costs: how far measuring anew is from measuring."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from collected import SETTINGS, networks, samples_of
from sections.costs import measured_again


def test_hours_are_compared_by_setting_as_the_reference_model_tells():
    """The second hour takes twice as long by its reference model, and one setting 1.2 times that."""
    samples = samples_of(networks(2))
    later = tuple(replace(one, device=f"{one.device};later", reference_seconds=2e-4) for one in SETTINGS)
    again = tuple(
        replace(m, setting=m.setting + len(SETTINGS), seconds=2 * m.seconds * (1.2 if m.setting else 1.0))
        for m in samples.measurements
    )
    both = replace(samples, settings=SETTINGS + later, measurements=samples.measurements + again)
    latencies, ratios = measured_again(both)
    assert np.abs(latencies) == pytest.approx(np.log([1.0, 1.2] * 2))
    assert ratios == pytest.approx(np.log([1.2, 1.2]))
    assert not any(map(len, measured_again(samples)))
