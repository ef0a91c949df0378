"""Networks of the transformers library for checks of legality: many architectures, tiny, random weights.

Each is traced as it comes, so that shape arithmetic, data-dependent sizes and odd constants stay in the
graph. ``name`` has static inputs, ``name:dynamic`` leaves all dimensions of the inputs open, and
``name:int8`` has static inputs and weights stored in eight bits with their decompression in the graph.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import openvino as ov
from openvino import opset13 as opset

if TYPE_CHECKING:
    import torch

__all__ = ["NAMES", "Network", "build"]


class Network(NamedTuple):
    """A converted network and the shapes of the inputs that it was traced with, by input name."""

    model: ov.Model
    shapes: dict[str, list[int]]


_WIDTHS: dict[str, int] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
}
_DECODER = {**_WIDTHS, "vocab_size": 99, "num_key_value_heads": 1, "max_position_embeddings": 64}
_ENCODER_DECODER = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "use_cache": False,
}
_EAGER = {"attn_implementation": "eager"}


def _tokens(length: int = 7, batch: int = 1, name: str = "input_ids") -> dict[str, torch.Tensor]:
    import torch

    return {name: torch.ones(batch, length, dtype=torch.int64)}


def _masked(length: int = 7) -> dict[str, torch.Tensor]:
    return {**_tokens(length), **_tokens(length, name="attention_mask")}


def _image(height: int = 32, width: int = 32, channels: int = 3) -> dict[str, torch.Tensor]:
    import torch

    return {"pixel_values": torch.zeros(1, channels, height, width)}


def _values(name: str, *shape: int) -> dict[str, torch.Tensor]:
    import torch

    return {name: torch.zeros(*shape)}


_Made = tuple[Any, dict[str, Any], list[str]]


def _of(kind: str, config: str, inputs: dict[str, Any], outputs: list[str], **sizes: Any) -> _Made:
    """The class ``kind`` of transformers made from its class ``config`` with ``sizes``."""
    import transformers

    made = getattr(transformers, kind)(getattr(transformers, config)(**sizes))
    return made, inputs, outputs


def _part(whole: str, config: str, part: str, inputs: dict[str, Any], **sizes: Any) -> _Made:
    """The submodule ``part`` of a network, such as a decoder."""
    network, _, _ = _of(whole, config, {}, [], **sizes)
    for name in part.split("."):
        network = getattr(network, name)
    return network, inputs, ["last_hidden_state"]


def _dpt() -> _Made:
    sizes = {**_WIDTHS, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3], "image_size": 32}
    sizes |= {"patch_size": 8, "neck_hidden_sizes": [8, 8, 16, 16], "fusion_hidden_size": 16}
    return _of("DPTForDepthEstimation", "DPTConfig", _image(), ["predicted_depth"], **sizes)


def _clip() -> _Made:
    text = {**_WIDTHS, "vocab_size": 99, "max_position_embeddings": 16, "eos_token_id": 98}
    sizes = {"text_config": text, "vision_config": {**_WIDTHS, "image_size": 32, "patch_size": 8}}
    inputs = {**_masked(), **_image()}
    return _of("CLIPModel", "CLIPConfig", inputs, ["logits_per_image"], projection_dim=32, **sizes)


def _mask2former() -> _Made:
    import transformers

    backbone = transformers.SwinConfig(
        image_size=64,
        embed_dim=16,
        depths=[1, 1, 1, 1],
        num_heads=[1, 1, 2, 2],
        window_size=4,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )
    sizes = {"feature_size": 32, "mask_feature_size": 32, "hidden_dim": 32, "encoder_feedforward_dim": 48}
    sizes |= {"dim_feedforward": 48, "encoder_layers": 1, "decoder_layers": 2, "num_attention_heads": 2}
    sizes |= {"num_queries": 5, "num_labels": 3, "common_stride": 4}
    config = transformers.Mask2FormerConfig(backbone_config=backbone, **sizes)
    outputs = ["class_queries_logits", "masks_queries_logits"]
    return transformers.Mask2FormerForUniversalSegmentation(config), _image(64, 64), outputs


def _detr(kind: str) -> _Made:
    import transformers

    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16, 16, 24], depths=[1, 1, 1, 1], out_features=["stage4"]
    )
    sizes = {
        key: value for key, value in _ENCODER_DECODER.items() if "token" not in key and key != "vocab_size"
    }
    config = getattr(transformers, f"{kind}Config")(
        use_timm_backbone=False, backbone_config=backbone, num_queries=6, **sizes
    )
    network = getattr(transformers, f"{kind}ForObjectDetection")(config)
    return network, _image(64, 64), ["logits", "pred_boxes"]


def _unet() -> _Made:
    """A small diffusion U-Net: residual blocks with a time embedding, attention, skip connections."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self, inward: int, outward: int) -> None:
            super().__init__()
            self.norm = nn.GroupNorm(4, inward)
            self.first, self.second = (
                nn.Conv2d(inward, outward, 3, padding=1),
                nn.Conv2d(outward, outward, 3, padding=1),
            )
            self.time, self.skip = nn.Linear(32, outward), nn.Conv2d(inward, outward, 1)

        def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
            y = self.first(functional.silu(self.norm(x))) + self.time(time)[:, :, None, None]
            return self.second(functional.silu(y)) + self.skip(x)

    class Attention(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.norm, self.qkv, self.out = (
                nn.GroupNorm(4, width),
                nn.Linear(width, 3 * width),
                nn.Linear(width, width),
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            batch, width, height, columns = x.shape
            tokens = self.norm(x).reshape(batch, width, height * columns).transpose(1, 2)
            q, k, v = self.qkv(tokens).view(batch, -1, 3, 2, width // 2).permute(2, 0, 3, 1, 4).unbind(0)
            mixed = (q @ k.transpose(-1, -2) / (width // 2) ** 0.5).softmax(-1) @ v
            mixed = self.out(mixed.transpose(1, 2).reshape(batch, -1, width))
            return x + mixed.transpose(1, 2).reshape(batch, width, height, columns)

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
            self.enter = nn.Conv2d(4, 8, 3, padding=1)
            self.down = nn.ModuleList([Block(8, 8), Block(8, 16)])
            self.shrink = nn.ModuleList(
                [nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.Conv2d(16, 16, 3, stride=2, padding=1)]
            )
            self.middle, self.attention = Block(16, 16), Attention(16)
            self.up = nn.ModuleList([Block(32, 8), Block(16, 8)])
            self.leave = nn.Conv2d(8, 4, 3, padding=1)

        def forward(self, sample: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
            frequencies = torch.exp(-torch.arange(8, dtype=torch.float32))
            angles = step.float()[:, None] * frequencies[None]
            time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
            y, skips = self.enter(sample), []
            for block, shrink in zip(self.down, self.shrink, strict=True):
                y = block(y, time)
                skips.append(y)
                y = shrink(y)
            y = self.attention(self.middle(y, time))
            for block in self.up:
                skip = skips.pop()
                y = functional.interpolate(y, size=skip.shape[2:], mode="nearest")
                y = block(torch.cat([y, skip], 1), time)
            return self.leave(y)

    return UNet(), {**_values("sample", 1, 4, 16, 16), "step": torch.ones(1, dtype=torch.int64)}, []


def _roberta(kind: str, **more: Any) -> Callable[[], _Made]:
    return lambda: _of(
        f"{kind}Model", f"{kind}Config", _masked(), ["last_hidden_state"], vocab_size=99, **_WIDTHS, **more
    )


def _decoder(kind: str, **more: Any) -> Callable[[], _Made]:
    return lambda: _of(
        f"{kind}ForCausalLM",
        f"{kind}Config",
        {**_masked()},
        ["logits"],
        **{**_DECODER, "use_cache": False, **more},
    )


def _vision(kind: str, model: str = "", outputs: str = "logits", **sizes: Any) -> Callable[[], _Made]:
    name = model or f"{kind}ForImageClassification"
    return lambda: _of(name, f"{kind}Config", _image(), [outputs], **sizes)


_STAGES = {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4}
_T5 = {
    "use_cache": False,
    "d_model": 32,
    "d_kv": 16,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 2,
    "vocab_size": 99,
}
_MBART: dict[str, Any] = {**_ENCODER_DECODER, "max_position_embeddings": 64}

_BUILDERS: dict[str, Callable[[], _Made]] = {
    "albert": _roberta("Albert", embedding_size=16),
    "bart": lambda: _of(
        "BartModel",
        "BartConfig",
        {**_tokens(), **_tokens(5, name="decoder_input_ids")},
        ["last_hidden_state"],
        **_MBART,
    ),
    "beit": _vision("Beit", **_WIDTHS, image_size=32, patch_size=8),
    "bert": _roberta("Bert"),
    "clip": _clip,
    "convnext": _vision("ConvNext", hidden_sizes=[8, 16, 16, 24], depths=[1, 1, 1, 1]),
    "convnextv2": _vision("ConvNextV2", hidden_sizes=[8, 16, 16, 24], depths=[1, 1, 1, 1]),
    "deberta": _roberta("Deberta", relative_attention=True, pos_att_type=["c2p", "p2c"]),
    "debertav2": _roberta(
        "DebertaV2", relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8
    ),
    "detr": lambda: _detr("Detr"),
    "dinov2": _vision(
        "Dinov2",
        **{k: v for k, v in _WIDTHS.items() if k != "intermediate_size"},
        image_size=32,
        patch_size=8,
    ),
    "distilbert": lambda: _of(
        "DistilBertModel",
        "DistilBertConfig",
        _masked(),
        ["last_hidden_state"],
        vocab_size=99,
        dim=32,
        n_layers=2,
        n_heads=2,
        hidden_dim=48,
    ),
    "dpt": _dpt,
    "electra": _roberta("Electra", embedding_size=16),
    "falcon": _decoder("Falcon"),
    "gemma": _decoder("Gemma", head_dim=16),
    "glpn": lambda: _of(
        "GLPNForDepthEstimation",
        "GLPNConfig",
        _image(64, 64),
        ["predicted_depth"],
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 16, 16, 24],
        num_attention_heads=[1, 1, 2, 2],
        decoder_hidden_size=8,
    ),
    "gpt_neox": _decoder("GPTNeoX"),
    "layoutlm": _roberta("LayoutLM"),
    "levit": _vision(
        "Levit",
        image_size=64,
        hidden_sizes=[16, 24, 32],
        num_attention_heads=[1, 2, 2],
        depths=[1, 1, 1],
        key_dim=[8, 8, 8],
    ),
    "llama": _decoder("Llama"),
    "llama_eager": _decoder("Llama", **_EAGER),
    "longformer_free_funnel": lambda: _of(
        "FunnelModel",
        "FunnelConfig",
        _masked(8),
        ["last_hidden_state"],
        vocab_size=99,
        block_sizes=[1, 1],
        d_model=32,
        n_head=2,
        d_head=16,
        d_inner=48,
        num_decoder_layers=1,
    ),
    "marian": lambda: _of(
        "MarianModel",
        "MarianConfig",
        {**_tokens(), **_tokens(5, name="decoder_input_ids")},
        ["last_hidden_state"],
        **_MBART,
    ),
    "mask2former": _mask2former,
    "mistral": _decoder("Mistral"),
    "mixtral": _decoder("Mixtral", num_local_experts=3, experts_implementation="batched_mm"),
    "mixtral_eager": _decoder("Mixtral", num_local_experts=3, experts_implementation="eager"),
    "mobilenet_v2": _vision("MobileNetV2", depth_multiplier=0.35, image_size=32),
    "mobilevit": lambda: _of(
        "MobileViTForImageClassification",
        "MobileViTConfig",
        _image(64, 64),
        ["logits"],
        image_size=64,
        hidden_sizes=[16, 24, 32],
        neck_hidden_sizes=[8, 8, 16, 16, 24, 24, 32],
        num_attention_heads=2,
    ),
    "mobilevitv2": lambda: _of(
        "MobileViTV2ForImageClassification",
        "MobileViTV2Config",
        _image(64, 64),
        ["logits"],
        width_multiplier=0.25,
        image_size=64,
    ),
    "mpnet": _roberta("MPNet"),
    "owlvit_vision": lambda: _of(
        "OwlViTVisionModel",
        "OwlViTVisionConfig",
        _image(),
        ["last_hidden_state"],
        **_WIDTHS,
        image_size=32,
        patch_size=8,
    ),
    "phi": _decoder("Phi"),
    "poolformer": _vision("PoolFormer", hidden_sizes=[8, 16, 16, 24], depths=[1, 1, 1, 1]),
    "qwen2": _decoder("Qwen2"),
    "regnet": _vision(
        "RegNet", hidden_sizes=[8, 16, 16, 24], depths=[1, 1, 1, 1], groups_width=8, embedding_size=8
    ),
    "roberta": _roberta("Roberta", max_position_embeddings=64, pad_token_id=0),
    "segformer": lambda: _of(
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        _image(64, 64),
        ["logits"],
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 16, 16, 24],
        num_attention_heads=[1, 1, 2, 2],
        decoder_hidden_size=16,
    ),
    "squeezebert": _roberta(
        "SqueezeBert",
        embedding_size=32,
        q_groups=2,
        k_groups=2,
        v_groups=2,
        post_attention_groups=1,
        intermediate_groups=2,
        output_groups=2,
    ),
    "swin": _vision("Swin", image_size=32, **_STAGES),
    "swinv2": _vision("Swinv2", image_size=32, **_STAGES),
    "t5": lambda: _of(
        "T5Model",
        "T5Config",
        {**_tokens(), **_tokens(5, name="decoder_input_ids")},
        ["last_hidden_state"],
        **_T5,
    ),
    "unet": _unet,
    "vit": _vision("ViT", **_WIDTHS, image_size=32, patch_size=8),
    "wav2vec2": lambda: _of(
        "Wav2Vec2Model",
        "Wav2Vec2Config",
        _values("input_values", 1, 1600),
        ["last_hidden_state"],
        **_WIDTHS,
        conv_dim=[8] * 3,
        conv_stride=[5, 4, 2],
        conv_kernel=[10, 8, 4],
        num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=2,
    ),
    "whisper_decoder": lambda: _part(
        "WhisperModel",
        "WhisperConfig",
        "decoder",
        # Without a mask the library looks for packed sequences, with an op that OpenVINO does not convert.
        {**_masked(5), **_values("encoder_hidden_states", 1, 12, 32)},
        max_target_positions=16,
        max_source_positions=12,
        **_ENCODER_DECODER,
    ),
    "whisper_encoder": lambda: _part(
        "WhisperModel",
        "WhisperConfig",
        "encoder",
        _values("input_features", 1, 80, 24),
        max_target_positions=16,
        max_source_positions=12,
        **_ENCODER_DECODER,
    ),
    "xlnet": lambda: _of(
        "XLNetModel",
        "XLNetConfig",
        _masked(),
        ["last_hidden_state"],
        vocab_size=99,
        d_model=32,
        n_layer=2,
        n_head=2,
        d_inner=48,
    ),
    "yolos": lambda: _of(
        "YolosForObjectDetection",
        "YolosConfig",
        _image(32, 48),
        ["logits", "pred_boxes"],
        **_WIDTHS,
        image_size=[32, 48],
        num_detection_tokens=5,
    ),
}

_DYNAMIC = (
    "bert",
    "roberta",
    "distilbert",
    "mpnet",
    "gpt_neox",
    "llama",
    "llama_eager",
    "mistral",
    "mixtral",
    "mixtral_eager",
    "qwen2",
    "phi",
    "bart",
    "t5",
    "whisper_decoder",
    "unet",
    "wav2vec2",
    "resnet",
    "convnext",
    "segformer",
    "mobilevit",
    "deberta",
    "dpt",
    "detr",
)
_INT8 = ("bert", "swin", "vit", "llama", "t5")

NAMES = (
    *_BUILDERS,
    *(f"{name}:dynamic" for name in _DYNAMIC if name in _BUILDERS),
    *(f"{name}:int8" for name in _INT8),
)


def build(name: str, seed: int = 0) -> Network:
    """One network of :data:`NAMES`, with weights from ``seed``.

    Raises:
        ValueError: There is no such network.
    """
    import torch

    kind, _, variant = name.partition(":")
    if name not in NAMES:
        raise ValueError(f"there is no network {name!r}; known are {', '.join(NAMES)}")
    torch.manual_seed(seed)
    network, inputs, outputs = _BUILDERS[kind]()
    model = _traced(network.eval(), inputs, outputs)
    model.friendly_name = name
    shapes = {}
    for port, (key, value) in zip(model.inputs, inputs.items(), strict=True):
        shapes[key] = list(value.shape)
        port.set_names({key})
        port.get_node().set_friendly_name(key)
        if variant != "dynamic":
            port.get_node().set_partial_shape(ov.PartialShape(list(value.shape)))
    model.validate_nodes_and_infer_types()
    if variant == "int8":
        _store_in_eight_bits(model)
    return Network(model, shapes)


def _traced(network: torch.nn.Module, inputs: dict[str, torch.Tensor], outputs: list[str]) -> ov.Model:
    import torch

    class Fields(torch.nn.Module):
        """The network with plain tensors as output, which is what tracing understands."""

        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *values: torch.Tensor) -> Any:
            answer = self.network(**dict(zip(inputs, values, strict=True)))
            return tuple(getattr(answer, field) for field in outputs) if outputs else answer

    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ov.convert_model(Fields().eval(), example_input=tuple(inputs.values()))


def _store_in_eight_bits(model: ov.Model) -> None:
    """Replace the weights of MatMul and Convolution by i8 with a scale per row, as NNCF stores them."""
    for op in model.get_ordered_ops():
        if (
            op.get_type_name() not in ("MatMul", "Convolution")
            or op.input_value(1).get_node().get_type_name() != "Constant"
        ):
            continue
        weights = op.input_value(1).get_node().get_data().astype(np.float32)
        axes = tuple(range(1, weights.ndim))
        scale = np.maximum(np.abs(weights).max(axis=axes, keepdims=True), 1e-9) / 127
        stored = opset.constant(np.round(weights / scale).astype(np.int8))
        whole = opset.multiply(opset.convert(stored, "f32"), opset.constant(scale.astype(np.float32)))
        op.input(1).replace_source_output(whole.output(0))
