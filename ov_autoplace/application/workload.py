"""What an application is: its models, how requests come to them, and which model follows which.

A request begins at a model, at a given rate or as soon as the one before it has ended, and goes on along
chains: after an inference of one model the same thread runs another one, so many times. That is how a program
is written that detects objects and then classifies each of them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace._base.json_fields import Record, naming, shown
from ov_autoplace._base.text import unknown_name
from ov_autoplace.decide.option_values import PARSERS
from ov_autoplace.errors import OptionError
from ov_autoplace.graph.shapes import Call

__all__ = ["Application", "Chain", "Demand", "Member", "Source"]

Source: TypeAlias = "str | os.PathLike[str] | ov.Model"

_VERSION = 1
_ARRIVALS = ("periodic", "poisson")
_MOST_IN_FLIGHT, _MOST_RATE, _MOST_TIMES, _MOST_PRIORITY = 1000, 1e6, 1000.0, 1000.0
_MOST_MODELS, _MOST_INFERENCES = 100, 100_000  # the latter of a request
_PERCENTILE = 99.0
_FILE = ("version", "models", "load", "chains")
_MODEL = ("path", "devices", "shapes", "calls", "properties")
_LOAD = ("start", "rate", "arrivals", "in_flight", "deadline_ms", "percentile", "priority")
_CHAIN = ("from", "to", "times")


@dataclass(frozen=True, eq=False)
class Member:
    """One model of an application.

    Attributes:
        name: What the application calls it.
        source: The model, or where its file is.
        devices: Those that it may run on; ``None`` = all that the application has.
        shapes: Shape by input name, for dynamic inputs.
        calls: Several sets of shapes, all of which a request consists of, each as often as it comes.
        properties: OpenVINO properties that it is compiled with.
    """

    name: str
    source: Source
    devices: tuple[str, ...] | None = None
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    calls: Sequence[Call] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Demand:
    """Requests that begin at one model.

    Attributes:
        start: The model's name.
        rate: How many begin per second; 0 = each as soon as one before it has ended.
        arrivals: ``periodic``, or ``poisson`` where they come at random.
        in_flight: How many there are at once, where they have no rate.
        deadline_seconds: How long after it should have begun a request has to be finished, all models along
            its chains included; ``None`` = whenever.
        percentile: How many in a hundred have to keep that.
        priority: What it counts beside others.
    """

    start: str
    rate: float = 0.0
    arrivals: str = "periodic"
    in_flight: int = 1
    deadline_seconds: float | None = None
    percentile: float = _PERCENTILE
    priority: float = 1.0

    @property
    def is_open(self) -> bool:
        """Whether requests come by themselves, however long those before them take."""
        return self.rate > 0

    def begins(self, seconds: float, factor: float, seed: int) -> FloatArray:
        """When requests begin within so many seconds, at so many times the rate, ``float64[n]``.

        There is always one: at the start where none would come in that time.

        Args:
            seconds: How long they come.
            factor: Times the rate.
            seed: Of arrivals at random, which are then exponential.
        """
        rate, generator = factor * self.rate, np.random.default_rng(seed)
        if self.arrivals == "periodic":
            return frozen_array(np.arange(max(1, int(seconds * rate))) / rate, np.float64)
        gaps = generator.exponential(1 / rate, size=int(2 * seconds * rate) + 20)
        times = np.cumsum(gaps)
        return frozen_array(times[times < seconds] if times[0] < seconds else [0.0], np.float64)


@dataclass(frozen=True)
class Chain:
    """After an inference of one model another one is run.

    Attributes:
        source: The model before.
        target: The model after.
        times: How often on average; a fraction is a share of the requests.
    """

    source: str
    target: str
    times: float = 1.0


class Application:
    """Several models and what is asked of them.

    Args:
        models: Each model by its name: a path, a model, or an object as in the file, whose ``path`` may be a
            model too.
        load: How requests come, as in the file, at most one load for each model; where there is none, one
            request in flight for each model that no chain leads to.
        chains: Which model follows which, as in the file, at most one chain from one model to another.

    Raises:
        OptionError: Something does not fit; the sentence names the key.
    """

    def __init__(
        self,
        models: Mapping[str, Source | Mapping[str, Any]],
        load: Sequence[Mapping[str, Any]] = (),
        chains: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        where = "the application"
        members = _record(models, f"{where}: 'models'")
        if not 0 < len(members.fields) <= _MOST_MODELS:
            raise OptionError(f"{where} has {len(members.fields)} models; it has 1 to {_MOST_MODELS}")
        self.members = {
            name: _member(name, given, f"{where}: {name!r}") for name, given in members.fields.items()
        }
        self.chains = tuple(self._chain(entry) for entry in _records(chains, where, "chains"))
        self._onward = {name: [c for c in self.chains if c.source == name] for name in self._in_order()}
        followers = {chain.target for chain in self.chains}
        starts = [{"start": name} for name in self.members if name not in followers]
        self.load = tuple(self._demand(entry) for entry in _records(load or starts, where, "load"))
        self._check_load()

    @classmethod
    def load_file(cls, path: str | os.PathLike[str]) -> Application:
        """The application in a JSON file; paths of models in it are relative to the file.

        Raises:
            OptionError: The file cannot be read, or does not fit.
        """
        record = Record.load(Path(path), OptionError, "an application")
        record.refuse_others(_FILE)
        record.integer("version", _VERSION, _VERSION)
        models = record.record("models")
        folder = Path(path).parent
        found = {}
        for name in models.fields:
            own = models.record(name)
            own.refuse_others(_MODEL)
            found[name] = {**own.fields, "path": folder / own.text("path")}
        load, chains = (record.items(key) if key in record else [] for key in ("load", "chains"))
        try:
            return cls(found, load, chains)
        except OptionError as cause:
            raise OptionError(f"{path}: {str(cause).removeprefix('the application: ')}") from cause

    @classmethod
    def of_files(cls, paths: Sequence[str | os.PathLike[str]]) -> Application:
        """One request in flight for each of some files, which are called by their names."""
        models: dict[str, Source] = {}
        for path in paths:
            stem, number = Path(path).stem, 2
            name = stem
            while name in models:
                name, number = f"{stem}-{number}", number + 1
            models[name] = path
        return cls(models)

    @property
    def is_open(self) -> bool:
        """Whether some requests come at a rate."""
        return any(demand.is_open for demand in self.load)

    def reached(self, start: str) -> dict[str, float]:
        """Inferences of each model per request that begins at a model, itself among them."""
        found = {start: 1.0}
        for name, chains in self._onward.items():
            for chain in chains if name in found else ():
                found[chain.target] = found.get(chain.target, 0.0) + found[name] * chain.times
        return found

    def _named(self, record: Record, key: str) -> str:
        name = record.text(key)
        if name not in self.members:
            raise OptionError(f"{record.where}: {key!r}: {unknown_name('model', name, self.members)}")
        return name

    def _chain(self, record: Record) -> Chain:
        record.refuse_others(_CHAIN)
        times = _positive(record, "times", 1.0, _MOST_TIMES)
        return Chain(self._named(record, "from"), self._named(record, "to"), times)

    def _demand(self, record: Record) -> Demand:
        record.refuse_others(_LOAD)
        if "rate" in record and "in_flight" in record:
            raise OptionError(f"{record.where} has a 'rate' and 'in_flight'; leave one of them out")
        if "arrivals" in record and "rate" not in record:
            raise OptionError(f"{record.where} has 'arrivals' and no 'rate'")
        arrivals = record.text("arrivals") if "arrivals" in record else _ARRIVALS[0]
        if arrivals not in _ARRIVALS:
            known = " or ".join(_ARRIVALS)
            raise OptionError(f"{record.where}: 'arrivals' is {shown(arrivals)}; it is {known}")
        deadline = _positive(record, "deadline_ms", 0.0, 1e9) / 1e3
        return Demand(
            self._named(record, "start"),
            _positive(record, "rate", 0.0, _MOST_RATE),
            arrivals,
            record.integer("in_flight", 1, _MOST_IN_FLIGHT) if "in_flight" in record else 1,
            deadline or None,
            _positive(record, "percentile", _PERCENTILE, 100.0),
            _positive(record, "priority", 1.0, _MOST_PRIORITY),
        )

    def _in_order(self) -> tuple[str, ...]:
        """The models, each behind all that lead to it.

        Raises:
            OptionError: A chain leads back to where it came from, or there are two of one.
        """
        pairs = Counter((chain.source, chain.target) for chain in self.chains)
        if twice := next((pair for pair, count in pairs.items() if count > 1), None):
            raise OptionError(
                f"the application: two chains lead from {twice[0]!r} to {twice[1]!r}; make them one"
            )
        before = {name: [c.source for c in self.chains if c.target == name] for name in self.members}
        found: dict[str, None] = {}
        while len(found) < len(before):
            free = [name for name in before if name not in found and found.keys() >= set(before[name])]
            if not free:
                name, passed = next(name for name in before if name not in found), set[str]()
                while name not in passed:  # backwards, until it is on the way that leads back
                    passed.add(name)
                    name = next(source for source in before[name] if source not in found)
                raise OptionError(f"the application: its chains lead from {name!r} back to itself")
            found.update(dict.fromkeys(free))
        return tuple(found)

    def _check_load(self) -> None:
        """Refuse models that no request comes to, and more requests than can be run."""
        starts = [demand.start for demand in self.load]
        if twice := next((name for name in starts if starts.count(name) > 1), None):
            raise OptionError(f"the application: two loads start at {twice!r}; make them one")
        if (together := sum(demand.in_flight for demand in self.load)) > _MOST_IN_FLIGHT:
            raise OptionError(
                f"the application: its loads have {together} requests 'in_flight'; "
                f"at most {_MOST_IN_FLIGHT} can be"
            )
        reached: set[str] = set()
        for start in starts:
            behind = self.reached(start)
            if (inferences := sum(behind.values())) > _MOST_INFERENCES:
                raise OptionError(
                    f"the application: a request that starts at {start!r} takes {inferences:.3g} inferences "
                    f"by the 'times' of its chains; at most {_MOST_INFERENCES:,} can be"
                )
            reached.update(behind)
        for name in self.members:
            if name not in reached:
                raise OptionError(
                    f"the application: no request comes to {name!r}; add it to the load or to a chain"
                )


def _record(value: Any, where: str) -> Record:
    """An object, which need not come from JSON."""
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        value = dict(value)
    elif isinstance(value, Mapping):
        raise OptionError(f"{where} has keys that are no text")
    return Record.of(value, where, OptionError)


def _records(values: Any, where: str, key: str) -> list[Record]:
    """A list of such objects."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise OptionError(f"{where}: {key!r} must be a list, not {shown(values)}")
    return [_record(value, f"{where}: {key.removesuffix('s')} {i}") for i, value in enumerate(values)]


def _positive(record: Record, key: str, default: float, most: float) -> float:
    """A number above 0 and at most ``most``; the default where there is none."""
    if key not in record:
        return default
    value = record.number(key)
    if not 0 < value <= most:
        raise OptionError(f"{record.where}: {key!r} must be above 0 and at most {most:g}, not {value:g}")
    return value


def _member(name: str, given: Source | Mapping[str, Any], where: str) -> Member:
    if not name or not name.isprintable():
        raise OptionError(f"{where} is no name of a model")
    if not isinstance(given, Mapping):
        return Member(name, _source(given, where))
    record = _record(given, where)
    record.refuse_others(_MODEL)
    if "path" not in record:
        raise OptionError(f"{where}: 'path' is missing")
    found = Member(name, _source(record.fields["path"], where))
    if "devices" in record:
        found = replace(found, devices=record.texts("devices"))
    if "shapes" in record:
        shapes = record.record("shapes")
        found = replace(found, shapes={k: tuple(shapes.integers(k, 0, 2**31 - 1)) for k in shapes.fields})
    if "calls" in record:
        if "shapes" in record:
            raise OptionError(f"{where} has 'shapes' and 'calls'; leave one of them out")
        with naming(f"{where}: 'calls'", OptionError):
            found = replace(found, calls=PARSERS["shapes"](record.items("calls")))
    if "properties" in record:
        found = replace(found, properties=dict(record.record("properties").fields))
    return found


def _source(value: Any, where: str) -> Source:
    if not isinstance(value, (str, os.PathLike, ov.Model)):
        raise OptionError(f"{where} must be a path or a model, not {shown(value)}")
    return value
