"""Checkpoints: written whole or not at all, and refused in one sentence when anything about them is wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ov_autoplace.errors import CheckpointError, OutputError
from ov_autoplace.policy import card as module
from ov_autoplace.policy.card import load_card, read_weights, write_checkpoint

FILES = ("policy.safetensors",)


def handmade(folder: Path, weights: bytes = b"not read here") -> Path:
    """A checkpoint whose weights nobody reads."""
    write_checkpoint(folder, weights, {"name": "handmade"}, {}, {"gap": 0.5})
    return folder


def refused(folder: Path) -> str:
    """The sentence with which a checkpoint is refused."""
    with pytest.raises(CheckpointError) as raised:
        read_weights(load_card(folder))
    assert "\n" not in str(raised.value)
    return str(raised.value)


def edit_card(folder: Path, **changes: object) -> None:
    """Change what the card says, with a valid sum over it: somebody else's card, not a damaged one."""
    data = json.loads((folder / "card.json").read_text())
    data.update(changes)
    data.pop("sha256")
    data["sha256"] = module._digest_of(data)
    (folder / "card.json").write_text(json.dumps(data))


def test_a_card_says_what_was_written(tmp_path: Path) -> None:
    training = {"seeds": [1, 2], "command": "ov-autoplace finetune"}
    card = write_checkpoint(
        tmp_path / "net", b"weights", {"name": "n"}, training, {"gap": {"mean": 0.01, "losing": []}}
    )
    assert load_card(tmp_path / "net") == card
    assert card.name == "n"
    assert dict(card.training) == training
    assert card.metrics["gap"]["mean"] == 0.01
    assert sorted(p.name for p in (tmp_path / "net").iterdir()) == sorted([*FILES, "card.json"])
    assert read_weights(card) == b"weights"


def test_any_changed_byte_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    folder = handmade(tmp_path / "net")
    original = load_card(folder)
    random = np.random.default_rng(0)
    sentences: list[str] = []
    for name in (*FILES, "card.json"):
        content = (folder / name).read_bytes()
        for position in random.integers(0, len(content), 40).tolist():
            changed = bytearray(content)
            changed[position] ^= int(random.integers(1, 256))
            (folder / name).write_bytes(changed)
            try:
                card = load_card(folder)
                read_weights(card)
            except CheckpointError as refusal:
                sentences.append(str(refusal))
            else:
                assert name == "card.json", (name, position)
                assert card == original, position  # white space
        (folder / name).write_bytes(content)
    assert load_card(folder) == original
    assert len(sentences) > 60
    assert not any("\n" in sentence for sentence in sentences)


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_or_missing_file_is_refused_before_it_is_used(tmp_path: Path, name: str) -> None:
    folder = handmade(tmp_path / "net")
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1] if len(content) > 1 else b"")
    assert f"{name} is damaged" in refused(folder)
    (folder / name).unlink()
    assert f"cannot read {name}" in refused(folder)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"schema": "somebody/else"}, "its schema is not 'ov-autoplace/policy'; give a folder"),
        ({"version": 2}, "has version 2, and ov-autoplace .* reads up to 1; upgrade ov-autoplace"),
        ({"version": "1"}, "was damaged or edited"),
        ({"weights": {"../secret": "0"}}, "was damaged or edited"),
        ({"network": None}, "was damaged or edited"),
        ({"features": {}}, r"made for other features .*\(vocabulary differs\)"),
    ],
)
def test_a_foreign_or_newer_card_is_refused(tmp_path: Path, changes: dict, sentence: str) -> None:
    folder = handmade(tmp_path / "net")
    edit_card(folder, **changes)
    with pytest.raises(CheckpointError, match=sentence):
        load_card(folder)


@pytest.mark.parametrize("part", ["vocabulary", "node"])
def test_a_network_for_other_features_is_refused(tmp_path: Path, part: str) -> None:
    folder = handmade(tmp_path / "net")
    features = json.loads((folder / "card.json").read_text())["features"]
    edit_card(folder, features={**features, part: "other"})
    assert f"({part} differs)" in refused(folder)


def test_a_folder_without_a_card_and_no_folder_are_told_apart(tmp_path: Path) -> None:
    assert "is not a policy checkpoint: it holds no card.json" in refused(tmp_path)
    assert "there is no checkpoint at" in refused(tmp_path / "nothing")


def test_the_digest_tells_checkpoints_apart(tmp_path: Path) -> None:
    first, same, other = (handmade(tmp_path / n, w) for n, w in (("a", b"1"), ("b", b"1"), ("c", b"2")))
    assert load_card(first).digest == load_card(same).digest != load_card(other).digest


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object()])
def test_what_json_cannot_hold_is_refused_and_nothing_is_written(tmp_path: Path, value: object) -> None:
    with pytest.raises(CheckpointError, match="what JSON cannot"):
        write_checkpoint(tmp_path / "net", b"", {}, {}, {"gap": value})
    assert not list(tmp_path.iterdir())


def test_what_else_lies_in_the_folder_stays_and_an_open_log_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "tuned"
    (folder / "curves").mkdir(parents=True)
    (folder / "curves" / "a.png").write_bytes(b"picture")
    (folder / "link").symlink_to("curves")
    with (folder / "log.jsonl").open("w") as log:
        log.write("one\n")
        log.flush()
        for weights in (b"1", b"2"):
            handmade(folder, weights)
        log.write("two\n")
    assert (folder / "log.jsonl").read_text() == "one\ntwo\n"
    assert (folder / "curves" / "a.png").read_bytes() == b"picture"
    assert (folder / "link").is_symlink()
    assert load_card(folder).name == "handmade"
    assert [p.name for p in tmp_path.iterdir()] == ["tuned"]


def test_a_link_to_a_folder_is_followed(tmp_path: Path) -> None:
    real = handmade(tmp_path / "real")
    (tmp_path / "link").symlink_to(real)
    handmade(tmp_path / "link", b"2")
    assert (tmp_path / "link").is_symlink()
    assert load_card(real).digest == load_card(tmp_path / "link").digest


def test_where_names_cannot_be_exchanged_the_checkpoint_is_replaced_in_two_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ov_autoplace._base import atomic_folder

    folder = handmade(tmp_path / "net")
    (folder / "other").write_text("kept")
    before = load_card(folder).digest
    monkeypatch.setattr(atomic_folder, "_exchange", lambda first, second: False)
    handmade(folder, b"2")
    assert load_card(folder).digest != before
    assert (folder / "other").read_text() == "kept"
    assert [p.name for p in tmp_path.iterdir()] == ["net"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutputError, match="no such file or directory"):
        handmade(tmp_path / "missing" / "net")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="is a file, not a folder"):
        handmade(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(OutputError, match="it is the current folder"):
        handmade(Path("."))


_KILLED_ANYWHERE = """
import os, sys
from pathlib import Path
from ov_autoplace._base.atomic_folder import write_folder

folder = Path(sys.argv[1])
names = ("card.json", "policy.bin", "policy.xml")

def state():
    return {(folder / n).read_text() for n in names} | {(folder / "log.jsonl").read_text()}

def save_until(step, new):
    # Everything that touches the file system raises an audit event; the process dies at the given one.
    seen = 0
    def die(event, arguments):
        nonlocal seen
        if event.split(".")[0] in ("open", "os", "shutil", "ctypes"):
            seen += 1
            if seen == step:
                os._exit(9)
    sys.addaudithook(die)
    write_folder(folder, {n: new.encode() for n in names})
    os._exit(0)

write_folder(folder, {n: b"0" for n in names})
(folder / "log.jsonl").write_text("log")
current, step, killed = "0", 0, True
while killed:
    step += 1
    child = os.fork()
    if not child:
        save_until(step, str(step))
    killed = os.waitpid(child, 0)[1] != 0
    found = state() - {"log"}
    assert len(found) == 1 and found <= {current, str(step)}, (step, found)
    current = found.pop()
assert current == str(step)
assert [p.name for p in folder.parent.iterdir()] == [folder.name]
print(step)
"""


def test_a_kill_at_any_moment_leaves_the_old_or_the_new_checkpoint(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _KILLED_ANYWHERE, str(tmp_path / "net")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 15  # it was killed in that many places


@pytest.mark.torch
def test_weights_of_another_network_or_in_another_form_are_refused(tmp_path: Path) -> None:
    import pickle

    from safetensors import numpy as safetensors

    from ov_autoplace.policy.config import CONFIGS
    from ov_autoplace.policy.networks.checkpoint import load_network

    network = CONFIGS["hsdag"].to_dict()
    foreign = safetensors.save({"some.weight": np.zeros(3, dtype=np.float32)})
    for name, weights in {"pickled": pickle.dumps({"a": 1}), "foreign": foreign, "empty": b""}.items():
        write_checkpoint(tmp_path / name, weights, network, {}, {})
        with pytest.raises(CheckpointError, match="cannot be built"):
            load_network(tmp_path / name)
    write_checkpoint(tmp_path / "config", foreign, {**network, "encoder": "transformer"}, {}, {})
    with pytest.raises(CheckpointError, match="cannot be built: encoder is 'transformer'"):
        load_network(tmp_path / "config")
    write_checkpoint(tmp_path / "field", foreign, {**network, "colour": 1}, {}, {})
    with pytest.raises(CheckpointError, match="no hyper-parameter 'colour'"):
        load_network(tmp_path / "field")


def test_nothing_in_the_package_can_unpickle() -> None:
    root = Path(module.__file__).parents[1]
    for source in root.rglob("*.py"):
        text = source.read_text(encoding="utf-8")
        assert "import pickle" not in text, source
        assert not re.search(r"(?<!safetensors\.)torch\.load\(", text), source
        assert "allow_pickle=True" not in text, source
