"""Fine-tuning runs on scripted devices: what they find, what they leave on disk, and how they go on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ov_autoplace.errors import CheckpointError, OptionError, TrainingError
from ov_autoplace.policy.card import load_card
from ov_autoplace.policy.config import CONFIGS
from ov_autoplace.policy.networks.checkpoint import load_network, save_checkpoint
from ov_autoplace.policy.networks.network import make_network
from ov_autoplace.training.finetune import finetune
from ov_autoplace.training.finetuning import run as run_module
from ov_autoplace.training.finetuning.task import ZERO_SHOT, TuningTask
from ov_autoplace.training.state import load_state
from training.chains import best_of_chain, chain_seconds, chain_table, fast_and_slow
from training.scripted_devices import ScriptedSession
from training.tuning_world import GROUPS, SETTINGS, SMALL, TRUE, World

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with weights that are all different, as in a trained one, and an answer that is slow."""
    folder = tmp_path_factory.mktemp("checkpoints") / "small"
    network = make_network(SMALL, 4)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    save_checkpoint(folder, network, {"seed": 0}, {})
    return folder


@pytest.fixture
def world(base: Path, tmp_path: Path) -> World:
    return World(base, tmp_path / "tuned")


def test_a_mix_that_is_faster_is_found_though_the_costs_said_otherwise(world):
    optimum, seconds = best_of_chain(TRUE)
    single = chain_seconds(TRUE, (0,) * GROUPS)
    result = world.tune(budget=120)
    (model,) = result.models
    assert seconds < 0.75 * single  # there is something to find
    assert chain_seconds(TRUE, world.best()) <= 1.05 * seconds, optimum
    assert model.best == pytest.approx(chain_seconds(TRUE, world.best()) / single, rel=0.03)
    assert model.after is not None
    assert model.before is not None
    assert model.after <= model.before
    saved = model.single_seconds * (1 - model.best)
    assert model.break_even == pytest.approx(model.seconds / saved)
    assert model.placement.to_dict() == json.loads(model.file.read_text())


def test_where_one_device_is_best_the_answer_is_that_device(world):
    world.true = chain_table(0.01 * fast_and_slow([1] * GROUPS, ratio=1.3), transfer=0.01, launch=0.002)
    world.believed = replace(world.true, transfer_seconds_per_byte=np.full((2, 2), 1e-6))
    (model,) = world.tune().models
    assert world.best() == (1,) * GROUPS
    assert (model.best, model.best_single, model.break_even) == (1.0, "DEV1", None)
    assert len(world.lines("measured")) == model.measurements > 2


def test_luck_of_one_compilation_never_becomes_the_answer(world, monkeypatch):
    world.true = chain_table(0.01 * fast_and_slow([1] * GROUPS, ratio=1.2), transfer=0.001, launch=0.001)
    world.believed = world.true
    compile_devices = ScriptedSession.compile_devices

    def lucky(session, devices):
        if not session.compilations_forgotten and len(set(devices)) > 1:
            executable = compile_devices(session, devices)
            session.luck[executable.devices] = 0.5
        return compile_devices(session, devices)

    monkeypatch.setattr(ScriptedSession, "compile_devices", lucky)
    (model,) = world.tune().models
    assert world.lines("refuted")
    assert world.best() == (1,) * GROUPS
    assert model.best == 1.0


def test_every_placement_is_compiled_once_unless_it_is_put_to_the_proof(world):
    world.tune()
    placements = [line["placement"] for line in world.lines("measured")]
    assert len(placements) == len(set(placements))
    numbers = [line["measurement"] for line in world.lines("measured")]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_budget_is_kept_also_when_compiling_is_slow(world, monkeypatch):
    compile_devices = ScriptedSession.compile_devices

    def slowly(session, devices):
        world.clock.now += 5.0
        return compile_devices(session, devices)

    monkeypatch.setattr(ScriptedSession, "compile_devices", slowly)
    start = world.clock.now
    result = world.tune(budget=100, settings=replace(SETTINGS, patience=1000))
    assert result.stopped == "budget"
    assert 0.5 * 100 < world.clock.now - start <= 1.05 * 100


def test_a_budget_that_allows_no_race_says_so(world):
    with pytest.raises(TrainingError, match=r"the budget of 0\.4 s ended before anything could be measured"):
        world.tune(budget=0.4)


def test_rounds_alternate_between_models_with_one_policy(world):
    result = world.tune("first", "second", budget=60)
    assert [model.name for model in result.models] == ["first", "second"]
    rounds = [(line["round"], line["model"]) for line in world.lines("measured") if line["round"]]
    for number in {n for n, _ in rounds if n < 4}:
        assert {model for n, model in rounds if n == number} <= {"first", "second"}
    assert [n for n, _ in rounds] == sorted(n for n, _ in rounds)
    assert (world.out / "best.first.affinity.json").exists()
    assert (world.out / "best.second.affinity.json").exists()
    assert sum(model.seconds for model in result.models) <= result.seconds


def test_models_of_the_same_name_are_told_apart(world):
    result = world.tune("a/net", "b/net", "other", budget=30)
    assert [model.name for model in result.models] == ["net-1", "net-2", "other"]


def test_the_folder_is_a_checkpoint_that_says_where_it_comes_from_and_can_be_gone_on_from(world, base):
    world.tune()
    card = load_card(world.out)
    assert card.training["base"]["digest"] == load_card(base).digest
    assert card.training["base"]["training"] == {"seed": 0}
    assert card.training["models"] == ["net"]
    assert card.metrics["net"]["measurements"] == len(world.lines("measured"))
    tuned, before = load_network(world.out).state_dict(), load_network(base).state_dict()
    assert any(not torch.equal(value, before[name]) for name, value in tuned.items())
    (world.checkpoint, world.out), first = (world.out, world.out.with_name("further")), card.digest
    world.tune(budget=10)
    assert load_card(world.out).training["base"]["digest"] == first


def test_superposition_only_changes_nothing_else(world, base):
    world.tune(superposition_only=True, settings=replace(SETTINGS, learning_rate=0.05))
    before, after = load_network(base).state_dict(), load_network(world.out).state_dict()
    changed = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert changed
    assert all("superposition" in name for name in changed)


def test_a_network_without_superposition_cannot_train_it_alone(world):
    with pytest.raises(TrainingError, match="'hsdag' has no superposition"):
        world.tune(checkpoint=None, network="hsdag", superposition_only=True)


def test_a_network_can_be_tuned_from_scratch(world):
    (model,) = world.tune(checkpoint=None, network="gdp", budget=20).models
    assert model.measurements >= 3
    assert load_card(world.out).name == "gdp"


def test_a_run_is_continued_without_measuring_anything_twice(world):
    first = world.tune(budget=40, settings=replace(SETTINGS, patience=1000))
    known = world.lines("measured")
    steps = optimiser_steps(world.out)
    second = world.tune(budget=100, settings=replace(SETTINGS, patience=1000), resume=True)
    everything = world.lines("measured")
    assert everything[: len(known)] == known
    assert len({line["placement"] for line in everything}) == len(everything) > len(known)
    assert optimiser_steps(world.out) > steps > 0
    assert second.models[0].before == pytest.approx(first.models[0].before, rel=0.05)
    assert second.seconds > first.seconds
    assert [line["source"] for line in everything].count(ZERO_SHOT) <= 1


def optimiser_steps(folder: Path) -> float:
    """Steps that the saved optimiser has made."""
    tensors, _ = load_state(folder / "state.safetensors")
    return max(float(value) for name, value in tensors.items() if name.startswith("optimizer/step/"))


def test_a_kill_in_the_middle_of_a_measurement_loses_nothing_else(world):
    world.interrupt_in_race = 4

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    # As after SIGKILL: nothing that belongs to the end of a run is done.
    original = run_module._Tuning.finish
    run_module._Tuning.finish = die  # type: ignore[method-assign]
    try:
        with pytest.raises(Killed):
            world.tune()
    finally:
        run_module._Tuning.finish = original  # type: ignore[method-assign]
    measured = world.lines("measured")
    assert measured
    assert len(world.best()) == GROUPS
    with (world.out / "measurements.jsonl").open("a") as log:
        log.write('{"model": "net", "kind": "meas')  # the line that was being written
    world.interrupt_in_race = -1
    world.tune(resume=True)
    assert world.lines("measured")[: len(measured)] == measured
    assert load_card(world.out)


def test_ctrl_c_ends_with_what_was_found(world):
    world.interrupt_in_race = 5
    result = world.tune()
    assert result.stopped == "interrupted"
    assert result.models[0].measurements == len(world.lines("measured")) > 0
    assert result.learning_curve.read_bytes().startswith(b"\x89PNG")
    world.interrupt_in_race = -1
    assert world.tune(resume=True).stopped != "interrupted"


def test_ctrl_c_while_the_first_model_is_profiled_leaves_nothing(world):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    world.load = interrupted
    with pytest.raises(KeyboardInterrupt):
        world.tune()
    assert not world.out.exists()


def test_ctrl_c_while_another_model_is_profiled_keeps_what_is_known(world):
    load, loaded = world.load, []

    def until_the_second(name, *arguments):
        if name == "other" and "other" not in loaded:
            loaded.append(name)
            raise KeyboardInterrupt
        loaded.append(name)
        return load(name, *arguments)

    world.load = until_the_second
    result = world.tune("net", "other")
    assert (result.stopped, result.models, result.not_reached) == ("interrupted", (), ("net", "other"))
    assert {"net.table.json", "state.safetensors", "card.json"} <= {p.name for p in world.out.iterdir()}

    known = []

    def remembering(name, source, request, budget, table):
        known.append((name, table is not None))
        return load(name, source, request, budget, table)

    world.load = remembering
    result = world.tune("net", "other", resume=True)
    assert known == [("net", True), ("other", False)]
    assert [model.name for model in result.models] == ["net", "other"]


def test_a_folder_that_holds_a_run_or_a_checkpoint_is_not_overwritten(world, base):
    world.tune(budget=10)
    with pytest.raises(TrainingError, match="holds a tuning run already; continue it with resume"):
        world.tune(budget=10)
    before = {path.name: path.read_bytes() for path in base.iterdir()}
    for resume in (False, True):
        with pytest.raises(TrainingError, match="holds a checkpoint, which tuning would overwrite"):
            world.tune(out=base, resume=resume)
    assert {path.name: path.read_bytes() for path in base.iterdir()} == before


def test_a_run_is_not_continued_as_another_one(world, tmp_path):
    world.tune(budget=10)
    with pytest.raises(TrainingError, match=r"other models \(net, not another\)"):
        world.tune("another", resume=True)
    with pytest.raises(TrainingError, match="other trained part"):
        world.tune(resume=True, superposition_only=True)
    world.digest = "changed"
    with pytest.raises(TrainingError, match="'net' is not the one that the run"):
        world.tune(resume=True)


def test_torch_runs_on_as_many_threads_afterwards_as_before(world):
    seen = []
    load = world.load

    def look(*arguments: object) -> TuningTask:
        seen.append(torch.get_num_threads())
        return load(*arguments)

    world.load = look
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        world.tune(budget=10)
        assert seen == [1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_resume_without_a_run_starts_one(world):
    assert world.tune(budget=10, resume=True).models


def test_a_preparation_that_fails_leaves_nothing_behind(world):
    def fail(*_: object) -> TuningTask:
        raise OptionError("no such pin")

    world.load = fail
    with pytest.raises(OptionError):
        world.tune()
    assert not world.out.exists()


@pytest.mark.parametrize("devices", [(), ("DEV0",)])
def test_one_device_leaves_nothing_to_tune(world, devices):
    with pytest.raises(OptionError, match="at least two devices"):
        world.tune(devices=devices)


def test_no_model_is_nothing_to_tune_on(world):
    with pytest.raises(OptionError, match="give at least one"):
        finetune([], checkpoint=world.checkpoint, out=world.out)


def test_a_policy_for_other_numbers_of_devices_is_refused(world, tmp_path):
    save_checkpoint(tmp_path / "three", make_network(replace(CONFIGS["hsdag"], num_devices=3), 0), {}, {})
    with pytest.raises(CheckpointError, match="exactly 3 devices, not 2"):
        world.tune(checkpoint=tmp_path / "three")
