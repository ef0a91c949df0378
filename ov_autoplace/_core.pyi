"""
C++ core of ov_autoplace: simulators, HETERO's partition rules, graph helpers, flows, profiler.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray

class Breakdown:
    """The parts of one placement's simulated latency."""

    @property
    def latency_seconds(self) -> float: ...
    @property
    def op_seconds(self) -> float: ...
    @property
    def launch_seconds(self) -> float: ...
    @property
    def transfer_seconds(self) -> float: ...
    @property
    def subgraphs(self) -> int: ...
    @property
    def device_seconds(
        self,
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", writable=False)]:
        """How long each device is busy, ``float64[D]``."""

    @property
    def subgraph_of(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", writable=False)]:
        """
        Subgraph of each group (of its first op), ``int32[G]``; -1 = it is in no submodel.
        """

    @property
    def lane_of(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", writable=False)]:
        """Device or lane of each of S subgraphs, ``int32[S]``."""

    @property
    def start_seconds(
        self,
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", writable=False)]:
        """When each subgraph is launched, ``float64[S]``."""

    @property
    def finish_seconds(
        self,
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", writable=False)]:
        """When each subgraph has finished, ``float64[S]``."""

class Simulator:
    """An immutable copy of a cost table, prepared for simulating placements."""

    def __init__(
        self,
        op_seconds: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        node_group: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        node_kind: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        tensor_producer: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        tensor_bytes: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        tensor_offsets: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        tensor_consumers: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        bond_first: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        bond_second: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        links: Annotated[
            NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        transfer_latency: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        transfer_seconds_per_byte: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        launch_seconds: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        mix_seconds: float,
        rules: int,
        rate: bool = False,
        corun_factor: float = 1.0,
    ) -> None:
        """
        The arrays of a ``CostTable`` and of its ``Wiring``; ``rules`` as in ``PartitionGraph``. With ``rate``, a placement's seconds are those of its busiest device.

        Raises:
            ValueError: The arrays do not fit together, or nodes are not in topological order.
        """

    @property
    def groups(self) -> int: ...
    @property
    def devices(self) -> int: ...
    def simulate(
        self,
        assignment: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        limit_seconds: float = float("inf"),
    ) -> float:
        """
        Seconds of one inference when group g runs on device ``assignment[g]`` (``int32[G]``).

        An answer above ``limit_seconds`` may be a lower bound only, found sooner.
        """

    def simulate_batch(
        self,
        assignments: Annotated[
            NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        threads: int = 0,
        limit_seconds: float = float("inf"),
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C")]:
        """
        Seconds of each of B assignments (``int32[B, G]``), ``float64[B]``; ``threads`` 0 = one per core.

        Answers above ``limit_seconds`` may be lower bounds only, found sooner.
        """

    def breakdown(
        self,
        assignment: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> Breakdown:
        """The parts of one placement's latency."""

class OverlapSimulator:
    """
    An immutable copy of a cost table, prepared for simulating placements on lanes that work at once.
    """

    def __init__(
        self,
        op_seconds: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        piece_of: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        runs: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tensor_producer: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        tensor_bytes: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        tensor_offsets: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        tensor_consumers: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        node_group: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        links: Annotated[
            NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        transfer_latency: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        transfer_seconds_per_byte: Annotated[
            NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        launch_seconds: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        lane_device: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        mix_seconds: float,
        corun_factor: float,
    ) -> None:
        """
        The arrays of a ``CostTable``, and of its ``SubmodelParts``.

        Raises:
            ValueError: The arrays do not fit together, or pieces are not in topological order.
        """

    @property
    def groups(self) -> int: ...
    @property
    def devices(self) -> int: ...
    def simulate(
        self,
        assignment: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        limit_seconds: float = float("inf"),
    ) -> float:
        """
        Seconds of one inference when group g runs on lane ``assignment[g]`` (``int32[G]``).

        An answer above ``limit_seconds`` may be a lower bound only, found sooner.
        """

    def simulate_batch(
        self,
        assignments: Annotated[
            NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        threads: int = 0,
        limit_seconds: float = float("inf"),
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C")]:
        """
        Seconds of each of B assignments (``int32[B, G]``), ``float64[B]``; ``threads`` 0 = one per core.

        Answers above ``limit_seconds`` may be lower bounds only, found sooner.
        """

    def breakdown(
        self,
        assignment: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> Breakdown:
        """The parts of one placement's latency."""

class PartitionGraph:
    """
    A graph of ops, prepared for being cut into HETERO's subgraphs many times.
    """

    def __init__(
        self,
        kinds: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        tensor_producer: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        tensor_offsets: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        tensor_consumers: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        rules: int,
    ) -> None:
        """
        Args:
            kinds: ``uint8[N]`` in topological order: 0 op, 1 Parameter, 2 Constant, 3 Result.
            tensor_producer: Op that makes each tensor, ``int32[T]``.
            tensor_offsets, tensor_consumers: CSR of consuming ops, one entry per input port.
            rules: 0 as OpenVINO had them until 2026.2.1, 1 from 2026.3.0 on.

        Raises:
            ValueError: The arrays do not fit together or are not in topological order.
        """

    def partition(
        self,
        devices: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> tuple[int | None, Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C")]]:
        """
        Number of submodels and, per op, the first op of its subgraph, for ``devices`` (``int32[N]``).

        No number where subgraphs wait for each other in a cycle, so that HETERO refuses the placement.
        """

def connected_labels(
    n: int,
    pairs: Annotated[NDArray[numpy.int32], dict(shape=(None, 2), order="C", device="cpu", writable=False)],
) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C")]:
    """
    Dense set number of each of n nodes, ``int32[n]``, after joining ``pairs`` (``int32[K, 2]``).

    Sets are numbered in order of first appearance.
    """

def merge_cycles(
    labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    edges: Annotated[NDArray[numpy.int32], dict(shape=(None, 2), order="C", device="cpu", writable=False)],
) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C")]:
    """
    Joins classes of nodes until the graph contracted by ``labels`` (``int32[n]``) has no cycle.

    The result, ``int32[n]``, is dense and numbers the classes in a topological order of the contracted
    graph, ties broken by the smallest member. ``edges`` is ``int32[K, 2]``.
    """

def minimum_cut(
    nodes: int,
    source: int,
    sink: int,
    tail: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    head: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    forward: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    backward: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
) -> tuple[
    int,
    Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C")],
    Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C")],
]:
    """
    Minimum cuts of a network whose K arcs let ``forward`` units pass from tail to head, ``backward`` back.

    Returns the maximum flow and, per node, whether it is on the source side of the cut with the
    smallest source side, and of the one with the largest (both ``uint8[nodes]``).
    """

def peak_bytes(
    moments: int,
    bytes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)],
    first: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    last: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    offsets: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    holders: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)],
    assignments: Annotated[
        NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    devices: int,
) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C")]:
    """
    The most bytes of results that each device holds at one moment, ``float64[B * D]`` row by row, for
    each of B ``assignments`` (``int32[B, N]``) of N holders to D ``devices``.

    R results are alive from ``first`` to ``last`` of ``moments``, both included, on the devices of
    their holders, which ``offsets`` and ``holders`` list as CSR.
    """

class ProfilerError(RuntimeError):
    pass

class RaceEntry:
    """What one candidate of a race did."""

    @property
    def samples(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C")]:
        """Seconds per inference in each round that it ran in, float64[n]."""

    @property
    def sample_bytes(self) -> bytes:
        """The samples as the bytes of their doubles."""

    @property
    def dropped(self) -> str:
        """Why it left the race; empty if it stayed to the end."""

class RaceResult:
    """Outcome of a race."""

    @property
    def entries(self) -> list[RaceEntry]:
        """One RaceEntry per candidate, in the order given."""

    @property
    def best(self) -> int:
        """Candidate with the lowest median of those that stayed."""

    @property
    def rounds(self) -> int: ...
    @property
    def seconds(self) -> float:
        """How long the race took."""

    @property
    def stopped(self) -> str:
        """What ended it: 'budget', 'one left' or 'max rounds'."""

def race_samplers(
    samplers: Sequence[Callable[[], float]],
    budget_seconds: float,
    *,
    min_rounds: int = 5,
    max_rounds: int = 1000,
    confidence: float = 0.99,
    margin: float = 0.0,
    seed: int = 0,
    names: Sequence[str] = [],
) -> RaceResult:
    """
    Races callables, each of which runs its candidate once and returns its seconds.
    """

def log_evidence_slower(losses: int, wins: int) -> float:
    """
    Logarithm of the e-value of 'slower in more than half of the rounds' after so many losses and wins.
    """

class NodeTime:
    """One node of a compiled model, as the device ran it."""

    @property
    def name(self) -> str: ...
    @property
    def subgraph(self) -> int:
        """Index of HETERO's submodel; 0 on a plain device."""

    @property
    def type(self) -> str: ...
    @property
    def exec_type(self) -> str:
        """Kernel and precision, in the plugin's words."""

    @property
    def status(self) -> str:
        """EXECUTED, NOT_RUN or OPTIMIZED_OUT."""

    @property
    def original_names(self) -> list[str]:
        """Ops of the model that the node stands for."""

    @property
    def consumers(self) -> list[str]:
        """Names of the nodes that read its results."""

    @property
    def layout(self) -> str:
        """Memory layout of the first result, in the plugin's words."""

    @property
    def precision(self) -> str:
        """Element type of the first result."""

    @property
    def seconds(self) -> float:
        """Mean over all inferences so far, cold ones included."""

def output_differences(path: str, other: str, smallest: float) -> list[float]:
    """
    How far each output in a file of `save_outputs` is from that in another one, from 0 to 2: the largest difference over the largest magnitude, and at least `smallest`; of integers the share that differs.
    """

class Executable:
    """A compiled model with valid inputs, ready to be timed."""

    def run(
        self, runs: int, warmup: int = 1, asynchronous: bool = False, inferences: int = 1
    ) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order="C")]:
        """
        Seconds per inference of each run, float64[runs]; a run is the mean of `inferences` inferences.
        """

    def run_bytes(self, runs: int, warmup: int, asynchronous: bool, inferences: int) -> bytes:
        """What `run` gives, as the bytes of its doubles."""

    def save_outputs(self, path: str, anew: bool = False) -> None:
        """
        Keeps what its last inference computed in a file, or what a new one does where there was none.
        """

    def node_times(self) -> list[NodeTime]:
        """NodeTime of every node; all zero unless compiled with PERF_COUNT."""

    def lane_profile(self) -> str:
        """
        JSON: when each submodel of the last inference ran, on which lane, and its nodes.
        """

    @property
    def subgraphs(self) -> int:
        """Number of submodels that HETERO made, else 1."""

    @property
    def compile_seconds(self) -> float: ...
    @property
    def execution_devices(self) -> list[str]: ...
    @property
    def optimal_requests(self) -> int:
        """How many requests in flight the device wants for its best rate."""

def load_seconds(
    members: Sequence[Executable], requests: int, asynchronous: bool, seconds: float = 0.03
) -> float:
    """
    Seconds per finished request while so many requests, made of the members in turns, are in flight: a thread each that calls infer(), or one thread that starts whichever is idle.
    """

def race_loads(
    loads: Sequence[tuple[Sequence[Executable], int, bool]],
    budget_seconds: float,
    *,
    min_rounds: int = 5,
    max_rounds: int = 1000,
    confidence: float = 0.99,
    margin: float = 0.0,
    seed: int = 0,
    sample_seconds: float = 0.03,
    progress: Callable[[int, int, float], None] | None = None,
    names: Sequence[str] = [],
    current: Annotated[NDArray[numpy.int64], dict(shape=(1), order="C", device="cpu")] | None = None,
) -> RaceResult:
    """
    Runs loads, which are (members, requests, asynchronous), in turns as ``Profiler.race`` runs executables; samples are seconds per finished request.
    """

class WorkloadOutcome:
    """What an application did."""

    @property
    def rates(self) -> list[float]:
        """Finished requests per second of each source."""

    @property
    def latency_bytes(self) -> list[bytes]:
        """
        Of each source, seconds of its requests from when they should have begun, as bytes of doubles.
        """

    @property
    def models(self) -> list[tuple[int, float]]:
        """(inferences, seconds within them) of each model."""

    @property
    def spans(self) -> list[tuple[int, int, float, float, int]]:
        """(model, caller, begin, end, processor) of each inference."""

    @property
    def seconds(self) -> float: ...
    @property
    def cpu_seconds(self) -> float:
        """Of all threads of the process."""

def run_workload(
    models: Sequence[Sequence[Executable]],
    sources: Sequence[tuple[int, int, bool, Sequence[float]]],
    links: Sequence[tuple[int, int, float]],
    seconds: float,
    in_turn: bool = False,
    spans: bool = False,
) -> WorkloadOutcome:
    """
    Runs several models at once, each of them copies: sources are (model, callers, whether it is open, arrivals) and begin requests, links are (from, to, times) and go on with them.
    """

def die_with_parent() -> bool:
    """
    Has the kernel kill this process when the thread that started it ends; whether it will.
    """

class Profiler:
    """Compiles and times models on an ov::Core of its own."""

    def __init__(
        self,
        libraries: Sequence[str],
        plugins: Sequence[tuple[str, str]],
        device_properties: Mapping[str, Mapping[str, str]],
    ) -> None:
        """
        Opens the libraries, which are OpenVINO's own and the native part for its release, registers (device name, plugin library) pairs that are not known yet and sets each device's properties.
        """

    def compile(
        self,
        xml_path: str,
        device: str,
        properties: Mapping[str, str] = {},
        affinities: Mapping[str, str] | None = None,
        input_high: Mapping[str, int] = {},
        seed: int = 0,
        extensions: Sequence[str] = [],
        weights_path: str = "",
        calls: Sequence[tuple[Mapping[str, Sequence[int]], float, Sequence[str]]] = [],
    ) -> Executable:
        """
        Compiles an IR; `affinities` maps every op to its device, `input_high` bounds integer inputs, `extensions` are the libraries of ops that are not OpenVINO's own, `weights_path` the IR of a Constant with the weights of a model on lanes. `calls` are (shapes by input, times, inputs that grow): what an inference of a dynamic model consists of; its seconds are those of all calls.
        """

    def save_op_by_op(
        self,
        xml_path: str,
        path: str,
        smallest: float,
        *,
        evaluate: bool = True,
        compile: bool = True,
        limit_seconds: float = 30.0,
        disturbed: int = 0,
        noise: float = 0.0,
        input_high: Mapping[str, int] = {},
        seed: int = 0,
        extensions: Sequence[str] = [],
    ) -> list[float]:
        """
        Runs an IR op by op, on the inputs of `compile`, and keeps what it computes in a file; ops are evaluated by OpenVINO's reference implementation or compiled for the CPU, each alone. Gives how far `disturbed` runs with relative errors of `noise` after each op are from it, by output.
        """

    @staticmethod
    def resident_bytes() -> int:
        """
        Memory of the process in which models are compiled, without code; 0 where nobody tells.
        """

    @staticmethod
    def race(
        executables: Sequence[Executable],
        budget_seconds: float,
        *,
        min_rounds: int = 5,
        max_rounds: int = 1000,
        confidence: float = 0.99,
        margin: float = 0.0,
        seed: int = 0,
        min_sample_seconds: float = 0.001,
        pause_seconds: float = 0.0,
        progress: Callable[[int, int, float], None] | None = None,
        names: Sequence[str] = [],
        current: Annotated[NDArray[numpy.int64], dict(shape=(1), order="C", device="cpu")] | None = None,
    ) -> RaceResult:
        """
        Runs the executables in turns, with pauses before each inference where some are given, and drops those that are certainly slower; `progress` is called with (rounds, candidates left, seconds) now and then, and `current[0]` is the candidate that runs.
        """
