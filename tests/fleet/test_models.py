"""Models that machines of a fleet keep."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ov_autoplace.fleet import models


def test_without_a_cache_a_model_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(models, "user_cache_folder", lambda: None)
    monkeypatch.setattr(models, "require_ray", lambda: SimpleNamespace(get=lambda value: value))
    files = [np.frombuffer(content, np.uint8) for content in (b"<net/>", b"weights")]

    first = models.local_model("digest", files)
    assert models.local_model("digest", files) == first
    assert len(list(tmp_path.rglob("*.bin"))) == 1
    assert first.with_suffix(".bin").read_bytes() == b"weights"
