"""Networks whose structure is the point: two independent towers, and operations with bodies."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node
from networks.cnn import MobileNetConfig, ResNetConfig, inverted_residuals, relu6, residual_stages
from networks.variation import pick


@dataclass(frozen=True)
class TwoTowerConfig:
    """Sizes of a network that compares an image with a text.

    Attributes:
        image: The image tower.
        tokens: Length of the text; the text tower is unrolled this often.
        width: Of the text tower's state.
        joint: Width of the space in which both towers meet.
    """

    image: ResNetConfig | MobileNetConfig = field(default_factory=ResNetConfig)
    vocabulary: int = 20000
    tokens: int = 64
    width: int = 256
    joint: int = 512

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> TwoTowerConfig:
        """Random sizes of ``depth`` blocks of one tower and steps of the other together.

        The image tower is a MobileNet, so that who learns from these has not seen a residual network.
        """
        image_share = random.uniform(0.1, 0.6)
        blocks = max(1, round(image_share * depth))
        return cls(
            vocabulary=pick(random, (2000, 20000, 50000)),
            tokens=max(1, depth - blocks),
            width=pick(random, (64, 128, 256, 512, 1024)),
            joint=pick(random, (128, 256, 512)),
            image=MobileNetConfig.varied(blocks, random),
        )


def two_tower(config: TwoTowerConfig, net: NetworkBuilder) -> ov.Model:
    """A convolutional tower with few large ops beside a recurrent one with many tiny ops, joined at the end.

    The two towers suit different devices: the first is bound by arithmetic, the second by how fast
    a device gets from one op to the next.
    """
    image: Node = net.input("image", (1, 3, config.image.image, config.image.image))
    ids = net.input("input_ids", (1, config.tokens), np.int64)
    with net.scope("image_tower"):
        x = _image_features(net, image, config.image)
        x = net.dense(net.global_average(x), config.joint, name="project")
    with net.scope("text_tower"):
        y = net.dense(_recurrent_state(net, ids, config), config.joint, name="project")
    with net.scope("join"):
        similarity = net.named(
            ops.matmul(_unit(net, x, "image"), _unit(net, y, "text"), False, True), "cosine"
        )
    return net.model("two_tower", {"similarity": similarity})


def _image_features(net: NetworkBuilder, x: Node, config: ResNetConfig | MobileNetConfig) -> Node:
    if isinstance(config, MobileNetConfig):
        x = relu6(net, net.conv(x, config.stem, 3, stride=2, padding=1, name="stem"), "stem.relu6")
        return inverted_residuals(net, x, config.stages)[-1]
    x = net.conv_relu(x, config.width, 7, stride=2, padding=3, name="stem")
    return residual_stages(net, net.max_pool(x, 3, 2, 1), config)


def _recurrent_state(net: NetworkBuilder, ids: Node, config: TwoTowerConfig) -> Node:
    """The last state of a gated recurrent network, one token after the other: ``[1, width]``."""
    text = net.embedding(ids, config.vocabulary, config.width)
    std = math.sqrt(1.0 / config.width)
    recurrent = {
        gate: net.normal(f"{gate}.weight", (config.width, config.width), std) for gate in ("update", "state")
    }
    tokens = net.named(ops.split(text, net.constant("split.axis", 1), config.tokens), "split")
    state: Node = net.zeros("initial", (1, config.width))
    for step in range(config.tokens):
        with net.scope("step"), net.scope(step):
            x = net.reshape(tokens.output(step), [1, config.width])
            update, fresh = (
                net.add(net.named(ops.matmul(state, weight, False, True), f"{gate}.matmul"), x, f"{gate}.add")
                for gate, weight in recurrent.items()
            )
            update = net.named(ops.sigmoid(update), "update")
            change = net.named(ops.subtract(net.named(ops.tanh(fresh), "fresh"), state), "change")
            state = net.add(state, net.named(ops.multiply(update, change), "step"), "next")
    return state


def _unit(net: NetworkBuilder, x: Node, name: str) -> Node:
    """``x`` scaled to Euclidean length 1."""
    return net.named(ops.normalize_l2(x, net.constant(f"{name}.axes", [1]), 1e-6, "add"), name)


@dataclass(frozen=True)
class ControlFlowConfig:
    """Sizes of a network with operations that hold networks.

    Attributes:
        iterations: Of the loop.
    """

    width: int = 1024
    rows: int = 64
    iterations: int = 12


def control_flow(config: ControlFlowConfig, net: NetworkBuilder) -> ov.Model:
    """A layer that a Loop repeats, then an If that picks one of two heads by the sign of the mean."""
    shape = (config.rows, config.width)
    x: Node = net.input("data", shape)
    x = net.relu(net.dense(x, config.width, gain=2.0, name="before"), "before.relu")
    x = _repeated_layer(net, x, config)
    positive = net.named(
        ops.greater(
            net.named(ops.reduce_mean(x, net.constant("mean.axes", [0, 1])), "mean"),
            net.constant("zero", 0.0, np.float32),
        ),
        "positive",
    )
    x = _chosen_head(net, positive, x, shape)
    return net.model("control_flow", {"result": net.dense(x, config.width, name="after")})


def _repeated_layer(net: NetworkBuilder, x: Node, config: ControlFlowConfig) -> Node:
    shape = [config.rows, config.width]
    with net.scope("loop"):
        trips = net.constant("trips", config.iterations)
        go = net.constant("go", True, np.bool_)
        loop = ops.loop(trips, go)
        with net.scope("body"):
            state = net.named(ops.parameter(shape, np.float32), "state")
            y = net.named(ops.tanh(net.dense(state, config.width, gain=1.5)), "tanh")
            y = net.add(state, y, "sum")
            again = net.named(ops.result(net.constant("again", True, np.bool_)), "again.result")
            body = ov.Model([again, net.named(ops.result(y), "next")], [state], "body")
        loop.set_function(body)
        loop.set_special_body_ports([-1, 0])
        loop.set_merged_input(state, x.output(0), body.outputs[1])
        output = loop.get_iter_value(body.outputs[1], -1)
        net.named(loop, "repeat")
    return output


def _chosen_head(net: NetworkBuilder, condition: Node, x: Node, shape: tuple[int, int]) -> Node:
    with net.scope("choice"):
        branches = []
        for name, activation in (("then", ops.relu), ("else", ops.sigmoid)):
            with net.scope(name):
                data = net.named(ops.parameter(list(shape), np.float32), "data")
                y = net.named(activation(net.dense(data, shape[1])), "activation")
                branches.append((data, ov.Model([net.named(ops.result(y), "result")], [data], name)))
        (then_data, then_body), (else_data, else_body) = branches
        choice = ops.if_op(condition.output(0))
        choice.set_then_body(then_body)
        choice.set_else_body(else_body)
        choice.set_input(x if isinstance(x, ov.Output) else x.output(0), then_data, else_data)
        output = choice.set_output(then_body.results[0], else_body.results[0])
        net.named(choice, "if")
    return output
