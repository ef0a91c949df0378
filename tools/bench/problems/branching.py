"""Networks that people use and that branch: what can run side by side in them is their structure's doing.

Seventeen kinds in one or two sizes each, with random weights, in the shape of what is published: dual
encoders (A. Radford et al., CLIP, 2021), Siamese networks (G. Koch et al., 2015; L. Bertinetto et al., 2016),
recommender towers (P. Covington et al., 2016; X. Yi et al., 2019), recurrent networks
(:mod:`problems.recurrent`), ensembles, multi-task experts (J. Ma et al., MMoE, 2018), detection heads (T.-Y.
Lin et al., RetinaNet, 2017), two-stream action recognition (K. Simonyan and A. Zisserman, 2014), SlowFast
pathways (C. Feichtenhofer et al., 2019), stereo matching (J. Zbontar and Y. LeCun, 2016), multi-scale
discriminators (K. Kumar et al., MelGAN, 2019), actor and critics (S. Fujimoto et al., TD3, 2018), and
audio-visual fusion (T. Afouras et al., 2018).

Three more are those where lanes lost when they were made by hand: HRNet's exchange of resolutions (K. Sun et
al., 2019), a speech decoder's cross-attention, and multi-task experts for one row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node
from networks.vision_transformer import encoder_layer
from problems.recurrent import RECURRENT


def build(name: str) -> ov.Model:
    """One of :data:`NETWORKS`."""
    return NETWORKS[name](NetworkBuilder(0, np.float32))


def two_towers(b: NetworkBuilder, layers: int, width: int, batch: int = 1) -> ov.Model:
    """Two independent stacks of fully connected layers, whose last features are joined."""
    ends = [b.mlp(b.input(side, [batch, width]), [width] * layers, side + "_") for side in ("left", "right")]
    return b.model("two_towers", {"joint": b.concat(ends)})


def _cnn(b: NetworkBuilder, x: Node, channels: Sequence[int], name: str) -> Node:
    """3x3 convolutions, each halving the picture, and the mean of what is left."""
    with b.scope(name):
        for layer, width in enumerate(channels):
            x = b.conv_relu(x, width, 3, stride=2 if layer else 1, name=f"conv{layer}")
            x = b.conv_relu(x, width, 3, name=f"conv{layer}b")
        return b.global_average(x)


def _transformer(b: NetworkBuilder, x: Node, layers: int, name: str) -> Node:
    """Encoder layers over ``[1, tokens, width]``."""
    for layer in range(layers):
        with b.scope(f"{name}{layer}"):
            x = encoder_layer(b, x, heads=4)
    return x


def _first_token(b: NetworkBuilder, x: Node, name: str) -> Node:
    return b.reshape(b.slice(x, 1, 0, 1, f"{name}_slice"), [0, -1], f"{name}_first")


def _dual_encoder(b: NetworkBuilder, width: int, layers: int) -> ov.Model:
    image = b.input("image", [1, 3, 64, 64])
    patches = b.conv(image, width, 16, stride=16, padding=0, name="patches")
    patches = b.transpose(b.reshape(patches, [0, 0, -1], "flat"), [0, 2, 1], "tokens")
    text = b.embedding(b.input("text", [1, 16], np.int64), 2, width)
    seen = _first_token(b, _transformer(b, patches, layers, "image"), "image")
    read = _first_token(b, _transformer(b, text, layers, "text"), "text")
    outputs = {
        "image_features": b.dense(seen, 64, name="image_joint"),
        "text_features": b.dense(read, 64, name="text_joint"),
    }
    return b.model("dual_encoder", outputs)


def _siamese(b: NetworkBuilder, size: int, channels: Sequence[int]) -> ov.Model:
    ends = [
        _cnn(b, b.input(which, [1, 3, size, size]), channels, which + "_tower") for which in ("left", "right")
    ]
    apart = b.named(ops.abs(b.named(ops.subtract(*ends), "difference")), "distance")
    return b.model("siamese", {"same": b.dense(apart, 1)})


def _recommender(b: NetworkBuilder, batch: int, widths: Sequence[int]) -> ov.Model:
    ends = []
    for side, features in (("user", 26), ("item", 26)):
        ids = b.input(f"{side}_ids", [batch, features], np.int64)
        known = b.reshape(b.embedding(ids, 2, 16, name=f"{side}_embedding"), [0, -1], f"{side}_flat")
        ends.append(b.mlp(known, widths, f"{side}_"))
    score = b.named(
        ops.reduce_sum(b.named(ops.multiply(*ends), "product"), b.constant("axis", [1]), True), "score"
    )
    return b.model("recommender", {"rating": score})


def _ensemble(
    b: NetworkBuilder, members: int, member: Callable[[Node, str], Node], shape: Sequence[int]
) -> ov.Model:
    x = b.input("x", shape)
    scores = [b.dense(member(x, f"member{m}"), 10, name=f"scores{m}") for m in range(members)]
    total = scores[0]
    for m, score in enumerate(scores[1:]):
        total = b.add(total, score, f"sum{m}")
    return b.model("ensemble", {"scores": total})


def _ensemble_of_mlps(b: NetworkBuilder) -> ov.Model:
    return _ensemble(b, 4, lambda x, name: b.mlp(x, [512] * 6, name), [1, 256])


def _ensemble_of_cnns(b: NetworkBuilder) -> ov.Model:
    return _ensemble(b, 4, lambda x, name: _cnn(b, x, [16, 32, 64], name), [1, 3, 32, 32])


def _experts(b: NetworkBuilder, batch: int, width: int) -> ov.Model:
    x = b.input("features", [batch, 128])
    experts = [b.mlp(x, [width, width, width], f"expert{e}_") for e in range(8)]
    stacked = b.concat([b.reshape(e, [0, 1, -1], f"lift{n}") for n, e in enumerate(experts)], 1, "experts")
    outputs = {}
    for task in ("click", "like"):
        gate = b.named(ops.softmax(b.dense(x, 8, name=f"{task}_gate"), 1), f"{task}_softmax")
        mixed = b.named(
            ops.matmul(b.reshape(gate, [0, 1, 8], f"{task}_row"), stacked, False, False), f"{task}_mix"
        )
        outputs[task] = b.dense(
            b.mlp(b.reshape(mixed, [0, -1], f"{task}_flat"), [width], task), 1, name=f"{task}_out"
        )
    return b.model("experts", outputs)


def _detection_heads(b: NetworkBuilder, channels: int, size: int) -> ov.Model:
    x: Node = b.input("image", [1, 3, 4 * size, 4 * size])
    x = b.conv_relu(b.conv_relu(x, channels, 3, stride=2, name="stem1"), channels, 3, stride=2, name="stem2")
    outputs: dict[str, Node] = {}
    for level in range(2):
        if level:
            x = b.conv_relu(x, channels, 3, stride=2, name=f"down{level}")
        for head, width in (("classes", 80), ("boxes", 36)):
            y: Node = x
            for layer in range(4):
                y = b.conv_relu(y, channels, 3, name=f"{head}{level}_{layer}")
            outputs[f"{head}{level}"] = b.conv(y, width, 3, name=f"{head}{level}_out")
    return b.model("detection_heads", outputs)


def _two_streams(b: NetworkBuilder) -> ov.Model:
    seen = _cnn(b, b.input("frame", [1, 3, 96, 96]), [16, 32, 64, 128], "spatial")
    moved = _cnn(b, b.input("flow", [1, 20, 96, 96]), [16, 32, 64, 128], "temporal")
    scores = b.add(b.dense(seen, 101, name="spatial_scores"), b.dense(moved, 101, name="temporal_scores"))
    return b.model("two_streams", {"scores": scores})


def _slow_fast(b: NetworkBuilder) -> ov.Model:
    """Few frames with many channels beside many frames with few."""
    ends = []
    for name, frames, channels in (("slow", 2, (32, 48, 64)), ("fast", 8, (12, 16, 24))):
        x: Node = b.input(name, [1, 3, frames, 48, 48])
        for layer, width in enumerate(channels):
            x = b.conv_relu(x, width, 3, name=f"{name}{layer}a")
            x = b.conv_relu(x, width, 3, stride=2, name=f"{name}{layer}b")
        axes = b.constant(f"{name}_axes", [2, 3, 4])
        ends.append(b.named(ops.reduce_mean(x, axes, False), f"{name}_mean"))
    return b.model("slow_fast", {"scores": b.dense(b.concat(ends), 400)})


def _stereo(b: NetworkBuilder) -> ov.Model:
    features = []
    for side in ("left", "right"):
        x: Node = b.input(side, [1, 1, 64, 128])
        for layer in range(4):
            x = b.conv_relu(x, 32, 3, name=f"{side}{layer}")
        features.append(x)
    y: Node = b.concat(features)
    for layer in range(2):
        y = b.conv_relu(y, 32, 1, name=f"match{layer}")
    return b.model("stereo", {"disparity": b.conv(y, 1, 1, name="disparity")})


def _discriminators(b: NetworkBuilder) -> ov.Model:
    audio = b.input("audio", [1, 1, 4096])
    outputs = {}
    for scale in range(3):
        with b.scope(f"scale{scale}"):
            x: Node = audio
            if scale:
                factor = 2**scale
                x = b.named(ops.avg_pool(x, [factor], [0], [0], [factor], True, "floor"), "pool")
            for layer, width in enumerate((16, 32, 64)):
                x = b.conv_relu(x, width, 15, stride=2, padding=7, name=f"conv{layer}")
                x = b.conv_relu(x, width, 5, name=f"conv{layer}b")
            outputs[f"real{scale}"] = b.conv(x, 1, 3, name="out")
    return b.model("discriminators", outputs)


def _actor_and_critics(b: NetworkBuilder, batch: int, width: int) -> ov.Model:
    state, action = b.input("state", [batch, 64]), b.input("action", [batch, 8])
    outputs: dict[str, Node] = {
        "action_next": b.dense(b.mlp(state, [width] * 3, "actor"), 8, name="actor_out")
    }
    both = b.concat([state, action])
    for critic in range(2):
        outputs[f"value{critic}"] = b.dense(
            b.mlp(both, [width] * 3, f"critic{critic}_"), 1, name=f"value{critic}_out"
        )
    return b.model("actor_and_critics", outputs)


def _audio_visual(b: NetworkBuilder) -> ov.Model:
    heard = b.dense(b.input("spectrum", [1, 32, 80]), 128, name="audio_in")
    heard = _first_token(b, _transformer(b, heard, 3, "audio"), "audio")
    seen = _cnn(b, b.input("lips", [1, 5, 64, 64]), [24, 48, 96], "video")
    return b.model("audio_visual", {"words": b.dense(b.concat([heard, seen]), 500)})


def _exchanged_resolutions(b: NetworkBuilder) -> ov.Model:
    """Three resolutions that are exchanged after every block: fine-grained, with many joins."""
    image = b.input("image", [1, 3, 64, 64])
    branches: list[Node] = [b.conv_relu(image, 16, 3, stride=2, name="stem")]
    branches += [b.conv_relu(branches[0], 32, 3, stride=2, name="stem2")]
    branches += [b.conv_relu(branches[1], 64, 3, stride=2, name="stem4")]
    for stage in range(4):
        done = [b.conv_relu(x, 16 << n, 3, name=f"block{stage}_{n}") for n, x in enumerate(branches)]
        up = b.conv(done[1], 16, 1, name=f"narrow{stage}")
        sizes = b.constant(f"sizes{stage}", [32, 32])
        up = b.named(
            ops.interpolate(up, sizes, "nearest", "sizes", [0], [0], axes=b.constant(f"axes{stage}", [2, 3])),
            f"up{stage}",
        )
        down = b.conv(done[0], 32, 3, stride=2, name=f"down{stage}")
        lower = b.conv(done[1], 64, 3, stride=2, name=f"lower{stage}")
        branches = [
            b.relu(b.add(done[0], up, f"high{stage}"), f"high_relu{stage}"),
            b.relu(b.add(done[1], down, f"middle{stage}"), f"middle_relu{stage}"),
            b.relu(b.add(done[2], lower, f"low{stage}"), f"low_relu{stage}"),
        ]
    return b.model("exchanged_resolutions", {f"map{n}": x for n, x in enumerate(branches)})


def _speech_decoder(b: NetworkBuilder) -> ov.Model:
    """One token through layers that look at themselves and at what was heard."""
    x: Node = b.input("token", [1, 1, 128])
    heard = b.input("heard", [1, 64, 128])
    for layer in range(4):
        with b.scope(f"layer{layer}"):
            x = _transformer(b, x, 1, "own")
            keys, values = b.dense(heard, 128, name="keys"), b.dense(heard, 128, name="values")
            scores = b.named(ops.softmax(b.named(ops.matmul(x, keys, False, True), "scores"), -1), "softmax")
            x = b.add(x, b.named(ops.matmul(scores, values, False, False), "mixed"), "cross")
    return b.model("speech_decoder", {"logits": b.dense(x, 1000)})


NETWORKS: Mapping[str, Callable[[NetworkBuilder], ov.Model]] = {
    "two towers/16x128": partial(two_towers, layers=16, width=128),
    "two towers/16x512": partial(two_towers, layers=16, width=512),
    "dual encoder/small": partial(_dual_encoder, width=128, layers=3),
    "dual encoder/base": partial(_dual_encoder, width=256, layers=6),
    "siamese/32": partial(_siamese, size=32, channels=(16, 32, 64)),
    "siamese/105": partial(_siamese, size=105, channels=(32, 64, 128)),
    "recommender towers/64 rows": partial(_recommender, batch=64, widths=(512, 256, 128)),
    "recommender towers/1 row": partial(_recommender, batch=1, widths=(1024, 1024, 512)),
    **RECURRENT,
    "ensemble/MLPs": _ensemble_of_mlps,
    "ensemble/CNNs": _ensemble_of_cnns,
    "experts/64 rows": partial(_experts, batch=64, width=256),
    "detection heads/32": partial(_detection_heads, channels=32, size=16),
    "detection heads/64": partial(_detection_heads, channels=64, size=32),
    "two streams/96": _two_streams,
    "slow and fast/48": _slow_fast,
    "stereo/128": _stereo,
    "discriminators/4096": _discriminators,
    "actor and critics/64 rows": partial(_actor_and_critics, batch=64, width=256),
    "audio and video/small": _audio_visual,
    # Where lanes that were made by hand were slower than the best width.
    "exchanged resolutions/64": _exchanged_resolutions,
    "speech decoder/1 token": _speech_decoder,
    "experts/1 row": partial(_experts, batch=1, width=64),
}
"""By kind and size."""
