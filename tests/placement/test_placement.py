from __future__ import annotations

import pytest

from ov_autoplace.errors import PlacementError
from ov_autoplace.placement.placement import Placement


def test_a_placement_survives_its_file(tmp_path):
    placement = Placement.from_dict({"a": "GPU", "b": "CPU", "ä/<x>": "GPU"})
    placement.save(tmp_path / "p.json")
    assert Placement.load(tmp_path / "p.json").to_dict() == placement.to_dict()
    assert placement.devices == ("GPU", "CPU")


@pytest.mark.parametrize("text", ["[]", '{"a": 1}', '{"a": ""}', "{", "", '{"a": {"b": "CPU"}}', "\x00\xff"])
def test_a_file_that_is_no_flat_object_of_texts_is_refused(tmp_path, text):
    path = tmp_path / "p.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(PlacementError):
        Placement.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(PlacementError, match=r"nowhere\.json"):
        Placement.load(tmp_path / "nowhere.json")
