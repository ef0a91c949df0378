"""Networks with a backbone or towers of their own configuration."""

from __future__ import annotations

from transformers_networks.parts import ENCODER_DECODER, WIDTHS, Made, image, made_of, masked

__all__ = ["clip", "detr", "dpt", "mask2former"]


def dpt() -> Made:
    sizes = {**WIDTHS, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3], "image_size": 32}
    sizes |= {"patch_size": 8, "neck_hidden_sizes": [8, 8, 16, 16], "fusion_hidden_size": 16}
    return made_of("DPTForDepthEstimation", "DPTConfig", image(), ["predicted_depth"], **sizes)


def clip() -> Made:
    text = {**WIDTHS, "vocab_size": 99, "max_position_embeddings": 16, "eos_token_id": 98}
    sizes = {"text_config": text, "vision_config": {**WIDTHS, "image_size": 32, "patch_size": 8}}
    inputs = {**masked(), **image()}
    return made_of("CLIPModel", "CLIPConfig", inputs, ["logits_per_image"], projection_dim=32, **sizes)


def mask2former() -> Made:
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
    return transformers.Mask2FormerForUniversalSegmentation(config), image(64, 64), outputs


def detr(kind: str) -> Made:
    import transformers

    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16, 16, 24], depths=[1, 1, 1, 1], out_features=["stage4"]
    )
    sizes = {
        key: value for key, value in ENCODER_DECODER.items() if "token" not in key and key != "vocab_size"
    }
    config = getattr(transformers, f"{kind}Config")(
        use_timm_backbone=False, backbone_config=backbone, num_queries=6, **sizes
    )
    network = getattr(transformers, f"{kind}ForObjectDetection")(config)
    return network, image(64, 64), ["logits", "pred_boxes"]
