"""Networks for images: convolutional, attention, detection, segmentation and depth."""

from __future__ import annotations

from transformers_kinds.recipes import BODY, VOCABULARY, Config, image, recipe, tokens

_CLASSES = "ForImageClassification"
_STAGES = ["stage1", "stage2", "stage3", "stage4"]
_NOT_PRETRAINED = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}
_RESNET_SIZES = {
    "embedding_size": 16,
    "hidden_sizes": [16, 32, 48, 64],
    "depths": [1, 1, 1, 1],
    "layer_type": "basic",
    "out_features": ["stage2", "stage3", "stage4"],
}
_DETR_SIZES = {
    **_NOT_PRETRAINED,
    "backbone_config": Config("ResNet", _RESNET_SIZES),
    "encoder_attention_heads": 2,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "num_queries": 10,
}
_SWIN = Config(
    "Swin",
    {
        "image_size": 64,
        "embed_dim": 16,
        "depths": [1, 1, 1, 1],
        "num_heads": [1, 2, 2, 4],
        "window_size": 4,
        "out_features": _STAGES,
    },
)

VISION = {
    "convnext": recipe("ConvNext", _CLASSES, image(64), hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 2, 1]),
    "mobilenet_v1": recipe("MobileNetV1", _CLASSES, image(64), image_size=64, depth_multiplier=0.25),
    "bit": recipe(
        "Bit",
        _CLASSES,
        image(64),
        embedding_size=16,
        hidden_sizes=[32, 48, 64, 96],
        depths=[1, 1, 1, 1],
        num_groups=8,
    ),
    "focalnet": recipe("FocalNet", _CLASSES, image(64), image_size=64, embed_dim=24, depths=[1, 1, 2, 1]),
    "regnet": recipe(
        "RegNet",
        _CLASSES,
        image(64),
        embedding_size=16,
        hidden_sizes=[32, 48, 64, 96],
        depths=[1, 1, 2, 1],
        groups_width=16,
    ),
    "swin": recipe(
        "Swin",
        _CLASSES,
        image(64),
        image_size=64,
        patch_size=4,
        embed_dim=24,
        depths=[1, 2],
        num_heads=[2, 4],
        window_size=4,
    ),
    "mobilevit": recipe(
        "MobileViT",
        _CLASSES,
        image(64),
        image_size=64,
        hidden_sizes=[24, 32, 48],
        neck_hidden_sizes=[8, 16, 24, 32, 48, 64, 128],
    ),
    "dinov2": recipe(
        "Dinov2",
        _CLASSES,
        image(56),
        image_size=56,
        patch_size=14,
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=2,
    ),
    "poolformer": recipe(
        "PoolFormer", _CLASSES, image(64), depths=[1, 1, 2, 1], hidden_sizes=[16, 32, 48, 64]
    ),
    "pvt": recipe(
        "Pvt",
        _CLASSES,
        image(64),
        image_size=64,
        hidden_sizes=[16, 32, 48, 64],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 2, 3, 4],
    ),
    "detr": recipe(
        "Detr",
        "ForObjectDetection",
        image(128),
        **_DETR_SIZES,
        d_model=64,
        encoder_layers=2,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
    ),
    "rt_detr": recipe(
        "RTDetr",
        "ForObjectDetection",
        image(128),
        backbone_config=Config("RTDetrResNet", _RESNET_SIZES),
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
    ),
    "owlvit": recipe(
        "OwlViT",
        "Model",
        {**tokens("input_ids"), **image(64), **tokens("attention_mask")},
        ["logits_per_image"],
        text_config={**BODY, "vocab_size": VOCABULARY, "max_position_embeddings": 16},
        vision_config={**BODY, "image_size": 64, "patch_size": 16},
        projection_dim=32,
    ),
    "upernet": recipe(
        "UperNet",
        "ForSemanticSegmentation",
        image(64),
        backbone_config=Config(
            "ConvNext",
            {"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1], "out_features": _STAGES},
        ),
        hidden_size=32,
        auxiliary_in_channels=32,
        auxiliary_channels=16,
        use_pretrained_backbone=False,
    ),
    "maskformer": recipe(
        "MaskFormer",
        "ForInstanceSegmentation",
        image(64),
        ["class_queries_logits", "masks_queries_logits"],
        backbone_config=_SWIN,
        decoder_config=Config(
            "Detr",
            {**_DETR_SIZES, "d_model": 32, "encoder_layers": 1, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64},
        ),
        fpn_feature_size=32,
        mask_feature_size=32,
    ),
    "dpt": recipe(
        "DPT",
        "ForDepthEstimation",
        image(64),
        image_size=64,
        hidden_size=64,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=128,
        backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[16, 24, 32, 48],
        fusion_hidden_size=32,
    ),
    "glpn": recipe(
        "GLPN",
        "ForDepthEstimation",
        image(64),
        hidden_sizes=[16, 24, 32, 48],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 1, 2, 4],
        decoder_hidden_size=16,
    ),
}
"""By name."""
