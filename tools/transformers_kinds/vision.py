"""Networks for images: convolutional, attention, detection, segmentation and depth."""

from __future__ import annotations

from transformers_kinds.inputs import BODY, Traceable, image

__all__ = ["CONVOLUTIONAL", "DENSE", "DETECTION", "TRANSFORMERS"]


def _convnext() -> Traceable:
    from transformers import ConvNextConfig, ConvNextForImageClassification

    config = ConvNextConfig(hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 2, 1])
    return Traceable(ConvNextForImageClassification(config), image(64), ["logits"])


def _mobilenet() -> Traceable:
    from transformers import MobileNetV1Config, MobileNetV1ForImageClassification

    config = MobileNetV1Config(image_size=64, depth_multiplier=0.25)
    return Traceable(MobileNetV1ForImageClassification(config), image(64), ["logits"])


def _bit() -> Traceable:
    from transformers import BitConfig, BitForImageClassification

    config = BitConfig(embedding_size=16, hidden_sizes=[32, 48, 64, 96], depths=[1, 1, 1, 1], num_groups=8)
    return Traceable(BitForImageClassification(config), image(64), ["logits"])


def _focalnet() -> Traceable:
    from transformers import FocalNetConfig, FocalNetForImageClassification

    config = FocalNetConfig(image_size=64, embed_dim=24, depths=[1, 1, 2, 1])
    return Traceable(FocalNetForImageClassification(config), image(64), ["logits"])


def _regnet() -> Traceable:
    from transformers import RegNetConfig, RegNetForImageClassification

    config = RegNetConfig(
        embedding_size=16, hidden_sizes=[32, 48, 64, 96], depths=[1, 1, 2, 1], groups_width=16
    )
    return Traceable(RegNetForImageClassification(config), image(64), ["logits"])


def _swin() -> Traceable:
    from transformers import SwinConfig, SwinForImageClassification

    config = SwinConfig(
        image_size=64, patch_size=4, embed_dim=24, depths=[1, 2], num_heads=[2, 4], window_size=4
    )
    return Traceable(SwinForImageClassification(config), image(64), ["logits"])


def _mobilevit() -> Traceable:
    from transformers import MobileViTConfig, MobileViTForImageClassification

    config = MobileViTConfig(
        image_size=64, hidden_sizes=[24, 32, 48], neck_hidden_sizes=[8, 16, 24, 32, 48, 64, 128]
    )
    return Traceable(MobileViTForImageClassification(config), image(64), ["logits"])


def _dinov2() -> Traceable:
    from transformers import Dinov2Config, Dinov2ForImageClassification

    config = Dinov2Config(
        image_size=56, patch_size=14, hidden_size=64, num_hidden_layers=3, num_attention_heads=2
    )
    return Traceable(Dinov2ForImageClassification(config), image(56), ["logits"])


def _poolformer() -> Traceable:
    from transformers import PoolFormerConfig, PoolFormerForImageClassification

    config = PoolFormerConfig(depths=[1, 1, 2, 1], hidden_sizes=[16, 32, 48, 64])
    return Traceable(PoolFormerForImageClassification(config), image(64), ["logits"])


def _pvt() -> Traceable:
    from transformers import PvtConfig, PvtForImageClassification

    config = PvtConfig(
        image_size=64, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4]
    )
    return Traceable(PvtForImageClassification(config), image(64), ["logits"])


def _detr_backbone() -> object:
    from transformers import ResNetConfig

    return ResNetConfig(
        embedding_size=16,
        hidden_sizes=[16, 32, 48, 64],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )


def _detr() -> Traceable:
    from transformers import DetrConfig, DetrForObjectDetection

    config = DetrConfig(
        backbone_config=_detr_backbone(),
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        num_queries=10,
    )
    return Traceable(DetrForObjectDetection(config), image(128), ["logits", "pred_boxes"])


def _rt_detr() -> Traceable:
    from transformers import RTDetrConfig, RTDetrForObjectDetection, RTDetrResNetConfig

    backbone = RTDetrResNetConfig(
        embedding_size=16,
        hidden_sizes=[16, 32, 48, 64],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )
    config = RTDetrConfig(
        backbone_config=backbone,
        encoder_hidden_dim=32,
        encoder_in_channels=[32, 48, 64],
        encoder_ffn_dim=64,
        encoder_attention_heads=2,
        d_model=32,
        decoder_in_channels=[32, 32, 32],
        decoder_ffn_dim=64,
        num_queries=20,
        decoder_layers=2,
        decoder_attention_heads=2,
        num_denoising=0,
        num_labels=8,
    )
    return Traceable(RTDetrForObjectDetection(config), image(128), ["logits", "pred_boxes"])


def _owlvit() -> Traceable:
    from transformers import OwlViTConfig, OwlViTModel

    from transformers_kinds.inputs import mask, tokens

    config = OwlViTConfig(
        text_config={**BODY, "vocab_size": 200, "max_position_embeddings": 16},
        vision_config={**BODY, "image_size": 64, "patch_size": 16},
        projection_dim=32,
    )
    return Traceable(OwlViTModel(config), {**tokens(16), **image(64), **mask(16)}, ["logits_per_image"])


def _maskformer() -> Traceable:
    from transformers import DetrConfig, MaskFormerConfig, MaskFormerForInstanceSegmentation, SwinConfig

    backbone = SwinConfig(
        image_size=64,
        embed_dim=16,
        depths=[1, 1, 1, 1],
        num_heads=[1, 2, 2, 4],
        window_size=4,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )
    decoder = DetrConfig(
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        decoder_attention_heads=2,
        decoder_ffn_dim=64,
        num_queries=10,
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=_detr_backbone(),
    )
    config = MaskFormerConfig(
        backbone_config=backbone, decoder_config=decoder, fpn_feature_size=32, mask_feature_size=32
    )
    outputs = ["class_queries_logits", "masks_queries_logits"]
    return Traceable(MaskFormerForInstanceSegmentation(config), image(64), outputs)


def _upernet() -> Traceable:
    from transformers import ConvNextConfig, UperNetConfig, UperNetForSemanticSegmentation

    backbone = ConvNextConfig(
        hidden_sizes=[16, 24, 32, 48],
        depths=[1, 1, 1, 1],
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )
    config = UperNetConfig(
        backbone_config=backbone,
        hidden_size=32,
        auxiliary_in_channels=32,
        auxiliary_channels=16,
        use_pretrained_backbone=False,
    )
    return Traceable(UperNetForSemanticSegmentation(config), image(64), ["logits"])


def _dpt() -> Traceable:
    from transformers import DPTConfig, DPTForDepthEstimation

    config = DPTConfig(
        image_size=64,
        hidden_size=64,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=128,
        backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[16, 24, 32, 48],
        fusion_hidden_size=32,
    )
    return Traceable(DPTForDepthEstimation(config), image(64), ["predicted_depth"])


def _glpn() -> Traceable:
    from transformers import GLPNConfig, GLPNForDepthEstimation

    config = GLPNConfig(
        hidden_sizes=[16, 24, 32, 48],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 1, 2, 4],
        decoder_hidden_size=16,
    )
    return Traceable(GLPNForDepthEstimation(config), image(64), ["predicted_depth"])


CONVOLUTIONAL = {
    "convnext": _convnext,
    "mobilenet_v1": _mobilenet,
    "bit": _bit,
    "focalnet": _focalnet,
    "regnet": _regnet,
}
TRANSFORMERS = {
    "swin": _swin,
    "mobilevit": _mobilevit,
    "dinov2": _dinov2,
    "poolformer": _poolformer,
    "pvt": _pvt,
}
DETECTION = {"detr": _detr, "rt_detr": _rt_detr, "owlvit": _owlvit}
DENSE = {"upernet": _upernet, "maskformer": _maskformer, "dpt": _dpt, "glpn": _glpn}
