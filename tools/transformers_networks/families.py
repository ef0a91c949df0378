"""What each network is made of: a table by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transformers_networks import composed
from transformers_networks.parts import (
    ENCODER_DECODER,
    WIDTHS,
    Made,
    image,
    made_of,
    masked,
    part_of,
    tokens,
    values,
)

__all__ = ["BUILDERS"]

_DECODER = {**WIDTHS, "vocab_size": 99, "num_key_value_heads": 1, "max_position_embeddings": 64}


def _roberta(kind: str, **more: Any) -> Callable[[], Made]:
    return lambda: made_of(
        f"{kind}Model", f"{kind}Config", masked(), ["last_hidden_state"], vocab_size=99, **WIDTHS, **more
    )


def _decoder(kind: str, **more: Any) -> Callable[[], Made]:
    return lambda: made_of(
        f"{kind}ForCausalLM",
        f"{kind}Config",
        masked(),
        ["logits"],
        **{**_DECODER, "use_cache": False, **more},
    )


def _vision(kind: str, **sizes: Any) -> Callable[[], Made]:
    return lambda: made_of(f"{kind}ForImageClassification", f"{kind}Config", image(), ["logits"], **sizes)


def _unet() -> Made:
    from transformers_networks.unet import unet  # imports torch

    return unet()


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
_MBART: dict[str, Any] = {**ENCODER_DECODER, "max_position_embeddings": 64}

BUILDERS: dict[str, Callable[[], Made]] = {
    "albert": _roberta("Albert", embedding_size=16),
    "bart": lambda: made_of(
        "BartModel",
        "BartConfig",
        {**tokens(), **tokens(5, name="decoder_input_ids")},
        ["last_hidden_state"],
        **_MBART,
    ),
    "beit": _vision("Beit", **WIDTHS, image_size=32, patch_size=8),
    "bert": _roberta("Bert"),
    "clip": composed.clip,
    "convnext": _vision("ConvNext", hidden_sizes=[8, 16, 16, 24], depths=[1, 1, 1, 1]),
    "convnextv2": _vision("ConvNextV2", hidden_sizes=[8, 16, 16, 24], depths=[1, 1, 1, 1]),
    "deberta": _roberta("Deberta", relative_attention=True, pos_att_type=["c2p", "p2c"]),
    "debertav2": _roberta(
        "DebertaV2", relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8
    ),
    "detr": lambda: composed.detr("Detr"),
    "dinov2": _vision(
        "Dinov2",
        **{k: v for k, v in WIDTHS.items() if k != "intermediate_size"},
        image_size=32,
        patch_size=8,
    ),
    "distilbert": lambda: made_of(
        "DistilBertModel",
        "DistilBertConfig",
        masked(),
        ["last_hidden_state"],
        vocab_size=99,
        dim=32,
        n_layers=2,
        n_heads=2,
        hidden_dim=48,
    ),
    "dpt": composed.dpt,
    "electra": _roberta("Electra", embedding_size=16),
    "falcon": _decoder("Falcon"),
    "gemma": _decoder("Gemma", head_dim=16),
    "glpn": lambda: made_of(
        "GLPNForDepthEstimation",
        "GLPNConfig",
        image(64, 64),
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
    "llama_eager": _decoder("Llama", attn_implementation="eager"),
    "longformer_free_funnel": lambda: made_of(
        "FunnelModel",
        "FunnelConfig",
        masked(8),
        ["last_hidden_state"],
        vocab_size=99,
        block_sizes=[1, 1],
        d_model=32,
        n_head=2,
        d_head=16,
        d_inner=48,
        num_decoder_layers=1,
    ),
    "marian": lambda: made_of(
        "MarianModel",
        "MarianConfig",
        {**tokens(), **tokens(5, name="decoder_input_ids")},
        ["last_hidden_state"],
        **_MBART,
    ),
    "mask2former": composed.mask2former,
    "mistral": _decoder("Mistral"),
    "mixtral": _decoder("Mixtral", num_local_experts=3, experts_implementation="batched_mm"),
    "mixtral_eager": _decoder("Mixtral", num_local_experts=3, experts_implementation="eager"),
    "mobilenet_v2": _vision("MobileNetV2", depth_multiplier=0.35, image_size=32),
    "mobilevit": lambda: made_of(
        "MobileViTForImageClassification",
        "MobileViTConfig",
        image(64, 64),
        ["logits"],
        image_size=64,
        hidden_sizes=[16, 24, 32],
        neck_hidden_sizes=[8, 8, 16, 16, 24, 24, 32],
        num_attention_heads=2,
    ),
    "mobilevitv2": lambda: made_of(
        "MobileViTV2ForImageClassification",
        "MobileViTV2Config",
        image(64, 64),
        ["logits"],
        width_multiplier=0.25,
        image_size=64,
    ),
    "mpnet": _roberta("MPNet"),
    "owlvit_vision": lambda: made_of(
        "OwlViTVisionModel",
        "OwlViTVisionConfig",
        image(),
        ["last_hidden_state"],
        **WIDTHS,
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
    "segformer": lambda: made_of(
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        image(64, 64),
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
    "t5": lambda: made_of(
        "T5Model",
        "T5Config",
        {**tokens(), **tokens(5, name="decoder_input_ids")},
        ["last_hidden_state"],
        **_T5,
    ),
    "unet": _unet,
    "vit": _vision("ViT", **WIDTHS, image_size=32, patch_size=8),
    "wav2vec2": lambda: made_of(
        "Wav2Vec2Model",
        "Wav2Vec2Config",
        values("input_values", 1, 1600),
        ["last_hidden_state"],
        **WIDTHS,
        conv_dim=[8] * 3,
        conv_stride=[5, 4, 2],
        conv_kernel=[10, 8, 4],
        num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=2,
    ),
    "whisper_decoder": lambda: part_of(
        "WhisperModel",
        "WhisperConfig",
        "decoder",
        # Without a mask the library looks for packed sequences, with an op that OpenVINO does not convert.
        {**masked(5), **values("encoder_hidden_states", 1, 12, 32)},
        max_target_positions=16,
        max_source_positions=12,
        **ENCODER_DECODER,
    ),
    "whisper_encoder": lambda: part_of(
        "WhisperModel",
        "WhisperConfig",
        "encoder",
        values("input_features", 1, 80, 24),
        max_target_positions=16,
        max_source_positions=12,
        **ENCODER_DECODER,
    ),
    "xlnet": lambda: made_of(
        "XLNetModel",
        "XLNetConfig",
        masked(),
        ["last_hidden_state"],
        vocab_size=99,
        d_model=32,
        n_layer=2,
        n_head=2,
        d_inner=48,
    ),
    "yolos": lambda: made_of(
        "YolosForObjectDetection",
        "YolosConfig",
        image(32, 48),
        ["logits", "pred_boxes"],
        **WIDTHS,
        image_size=[32, 48],
        num_detection_tokens=5,
    ),
}
