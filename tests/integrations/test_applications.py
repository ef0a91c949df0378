"""The recipe for a plan of several models in optimum-intel, as the page of applications shows it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from joint_plans import IN_CALLER, saved
from ov_autoplace.plan.plan import WholePlan
from places import ROOT
from processes import run, run_python

TOLD = """
import json, torch
model.generate(torch.zeros(1, 80, 3000), max_new_tokens=4)
asked = ("EXECUTION_DEVICES", "NUM_STREAMS", "PERFORMANCE_HINT")
parts = {"encoder": model.encoder.request, "decoder": model.decoder.request.get_compiled_model()}
print(json.dumps({name: [str(part.get_property(key)) for key in asked] for name, part in parts.items()}))
"""


def test_parts_of_a_speech_model_run_as_the_plan_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_python("make_pipelines.py", tmp_path, "speech")
    plans = {
        "encoder": WholePlan("YCPU", properties={"PERFORMANCE_HINT": "THROUGHPUT"}),
        "decoder": IN_CALLER,
    }
    files = {name: tmp_path / "speech" / f"openvino_{name}_model.xml" for name in plans}
    saved(tmp_path / "speech.plan.json", {name: (plan, files[name]) for name, plan in plans.items()})
    page = (ROOT / "docs" / "applications.md").read_text(encoding="utf-8")
    recipe = re.search(r"^### optimum-intel\n.*?^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert recipe is not None

    done = run(sys.executable, "-c", recipe[1] + TOLD, AUTOPLACE_EXTRA_DEVICES="YCPU=CPU")

    encoder, decoder = json.loads(done.stdout.splitlines()[-1]).values()
    assert (encoder[0], encoder[2]) == ("['YCPU']", "THROUGHPUT")
    assert (decoder[0], decoder[1]) == ("['CPU']", "0")
