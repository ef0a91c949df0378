"""What of a model runs in submodels on lanes, what stays in the model around them, and what cannot run so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import openvino as ov

from ov_autoplace.devices.extension import SCHEDULE, type_of
from ov_autoplace.graph.foldable import foldable_ops
from ov_autoplace.graph.names import unique_names
from ov_autoplace.graph.records import bodies_of

__all__ = [
    "ModelOps",
    "Role",
    "Tensor",
    "carried_type",
    "ops_of",
    "reason_not_schedulable",
    "refusal",
]

# How data of a type cross the boundary of that op. The CPU plugin computes in the types on the
# right anyway, in bf16 on some processors only: on the others it hands an op f32 in its place.
_CARRIED = {
    "f32": ov.Type.f32, "i32": ov.Type.i32, "i8": ov.Type.i8, "u8": ov.Type.u8,
    "bf16": ov.Type.f32, "f16": ov.Type.f32, "f64": ov.Type.f32,
    "i64": ov.Type.i32, "u64": ov.Type.i32, "u32": ov.Type.i32, "i16": ov.Type.i32, "u16": ov.Type.i32,
    "boolean": ov.Type.u8,
}  # fmt: skip


class Role(Enum):
    """What becomes of an op."""

    RUNS = "is in a submodel"
    DATA = "an input or a variable's value, from the surrounding model"
    STORED = "a constant, or computed from constants alone: in every submodel that reads it"
    END = "an output or a variable's new value, in the surrounding model"
    FIRST_VALUE = "computes but the first value of a variable, in the surrounding model"


class Tensor(NamedTuple):
    """An output of an op, by the op's position in topological order and the port."""

    op: int
    port: int


@dataclass(frozen=True, eq=False)
class ModelOps:
    """The N ops of a model in topological order.

    Attributes:
        nodes: The ops.
        names: Their friendly names, told apart as ``make_names_unique`` would.
        sources: What each of them reads.
        roles: What becomes of each of them.
    """

    nodes: Sequence[ov.Node]
    names: Sequence[str]
    sources: Sequence[Sequence[Tensor]]
    roles: Sequence[Role]

    def output(self, tensor: Tensor) -> ov.Output:
        """The output that a tensor is."""
        return self.nodes[tensor.op].output(tensor.port)

    def described(self, tensor: Tensor) -> str:
        """A tensor for error sentences."""
        node = self.nodes[tensor.op]
        return f"output {tensor.port} of {node.get_type_name()} {self.names[tensor.op]!r}"

    def data(self) -> list[Tensor]:
        """What submodels read from the surrounding model."""
        return self._between(Role.DATA, Role.RUNS)

    def results(self) -> list[Tensor]:
        """What submodels make for the surrounding model."""
        return self._between(Role.RUNS, Role.END)

    def _between(self, producer: Role, reader: Role) -> list[Tensor]:
        found = (
            tensor
            for sources, role in zip(self.sources, self.roles, strict=True)
            if role is reader
            for tensor in sources
            if self.roles[tensor.op] is producer
        )
        return list(dict.fromkeys(found))


def ops_of(model: ov.Model) -> ModelOps:
    """The ops of a model."""
    nodes = model.get_ordered_ops()
    position = {node.get_instance_id(): i for i, node in enumerate(nodes)}
    sources = [
        [Tensor(position[v.get_node().get_instance_id()], v.get_index()) for v in node.input_values()]
        for node in nodes
    ]
    types = tuple(node.get_type_name() for node in nodes)
    names = unique_names(node.get_friendly_name() for node in nodes)
    return ModelOps(nodes, names, sources, _roles(types, sources))


def _roles(types: tuple[str, ...], sources: Sequence[Sequence[Tensor]]) -> list[Role]:
    stored = foldable_ops(types, [[tensor.op for tensor in row] for row in sources])
    roles = [_role(kind, is_stored) for kind, is_stored in zip(types, stored.tolist(), strict=True)]
    read = [role is Role.END for role in roles]
    for i in reversed(range(len(roles))):
        if roles[i] is Role.RUNS and not read[i]:
            roles[i] = Role.FIRST_VALUE
        elif roles[i] in (Role.RUNS, Role.END):
            for tensor in sources[i]:
                read[tensor.op] = True
    return roles


def _role(kind: str, is_stored: bool) -> Role:
    if is_stored:
        return Role.STORED
    if kind in ("Parameter", "ReadValue"):
        return Role.DATA
    return Role.END if kind in ("Result", "Assign") else Role.RUNS


def carried_type(element: ov.Type) -> ov.Type | None:
    """The type in which data of a type cross the op's boundary; ``None`` where they cannot."""
    return _CARRIED.get(element.to_string())


def reason_not_schedulable(model: ov.Model) -> str | None:
    """Why no plan can put a model on lanes; ``None`` where one may.

    Args:
        model: Any model; it is not modified.
    """
    return refusal(ops_of(model))


def refusal(ops: ModelOps) -> str | None:
    """The same for ops that were read already."""
    for node in _with_bodies(ops.nodes):
        name, version = kind = type_of(node)
        if kind == SCHEDULE:
            return "the model has a schedule already"
        if not version.startswith("opset"):
            return (
                f"op {node.get_friendly_name()!r} is a {name} of {version or 'an extension'}, "
                "whose library the submodels would need and which cannot be known"
            )
        if name == "If" and any(output.get_partial_shape().is_dynamic for output in node.outputs()):
            # Some graphs read it before it has written anything; which ones depends on the order of outputs.
            return (
                f"the shape of what If {node.get_friendly_name()!r} makes is not known, and OpenVINO "
                "gets the first inference of some such graphs wrong"
            )
    for what, tensors in (("reads", ops.data()), ("makes", ops.results())):
        for tensor in tensors:
            element = ops.output(tensor).get_element_type()
            if carried_type(element) is None:
                return (
                    f"what runs on lanes {what} {ops.described(tensor)}, whose type {element.to_string()} "
                    "cannot be passed to and from them"
                )
    return None


def _with_bodies(nodes: Sequence[ov.Node]) -> Iterator[ov.Node]:
    for node in nodes:
        yield node
        for body in bodies_of(node):
            yield from _with_bodies(body.get_ops())
