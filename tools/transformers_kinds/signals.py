"""Networks for sound, for several kinds of input at once, and for time series."""

from __future__ import annotations

import numpy as np

from transformers_kinds.recipes import (
    BODY,
    VOCABULARY,
    Config,
    Recipe,
    floats,
    image,
    masked,
    recipe,
    tokens,
)

_WAVE = {
    "conv_dim": [32, 32, 32],
    "conv_kernel": [10, 3, 3],
    "conv_stride": [5, 2, 2],
    "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "vocab_size": 32,
    **BODY,
}
_WORDS = {**BODY, "vocab_size": VOCABULARY, "max_position_embeddings": 16}
_PATCHES = {**BODY, "image_size": 64, "patch_size": 16}
_SEEN = {**tokens("input_ids"), **image(64), **tokens("attention_mask")}
_SEQ2SEQ = {"encoder_layers": 2, "decoder_layers": 2, "use_cache": False}

SIGNALS: dict[str, Recipe] = {
    "wav2vec2": recipe("Wav2Vec2", "ForCTC", floats("input_values", 4000), **_WAVE),
    "spectrogram_transformer": recipe(
        "AST",
        "ForAudioClassification",
        floats("input_values", 128, 32),
        max_length=128,
        num_mel_bins=32,
        **BODY,
    ),
    "hubert": recipe("Hubert", "ForCTC", floats("input_values", 4000), **_WAVE),
    "whisper": recipe(
        "Whisper",
        "ForAudioClassification",
        floats("input_features", 16, 100),
        num_mel_bins=16,
        d_model=64,
        encoder_layers=2,
        encoder_attention_heads=2,
        encoder_ffn_dim=128,
        max_source_positions=50,
    ),
    "speech_to_text": recipe(
        "Speech2Text",
        "Model",
        {**floats("input_features", 64, 16), **tokens("decoder_input_ids", count=8)},
        vocab_size=VOCABULARY,
        d_model=64,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        input_feat_per_channel=16,
        conv_channels=64,
        max_source_positions=100,
        max_target_positions=32,
        **_SEQ2SEQ,
    ),
    "hifigan": Recipe(
        Config(
            "SpeechT5HifiGan",
            {
                "model_in_dim": 16,
                "upsample_initial_channel": 32,
                "upsample_rates": [4, 4],
                "upsample_kernel_sizes": [8, 8],
                "resblock_kernel_sizes": [3, 7],
                "resblock_dilation_sizes": [[1, 3], [1, 3]],
            },
        ),
        "SpeechT5HifiGan",
        floats("spectrogram", 40, 16),
        ["waveform"],
    ),
    "univnet": recipe(
        "UnivNet",
        "Model",
        {**floats("input_features", 20, 16), **floats("noise_sequence", 20, 16)},
        ["waveforms"],
        model_in_channels=16,
        model_hidden_channels=8,
        num_mel_bins=16,
        resblock_stride_sizes=[4, 4],
        resblock_kernel_sizes=[3, 3],
        resblock_dilation_sizes=[[1, 3], [1, 3]],
        kernel_predictor_hidden_channels=16,
    ),
    "clip": recipe(
        "CLIP",
        "Model",
        _SEEN,
        ["logits_per_image"],
        text_config={**_WORDS, "eos_token_id": 2},
        vision_config=_PATCHES,
        projection_dim=32,
    ),
    "siglip": recipe(
        "Siglip",
        "Model",
        {**tokens("input_ids"), **image(64)},
        ["logits_per_image"],
        text_config={**_WORDS, "projection_size": 64},
        vision_config=_PATCHES,
    ),
    "vilt": recipe(
        "Vilt",
        "Model",
        {**masked(), **image(64), "pixel_mask": np.ones((1, 64, 64), np.int64)},
        ["last_hidden_state", "pooler_output"],
        image_size=64,
        patch_size=16,
        vocab_size=VOCABULARY,
        max_image_length=-1,
        **BODY,
    ),
    "blip": recipe(
        "Blip",
        "ForImageTextRetrieval",
        _SEEN,
        ["itm_score"],
        text_config={**_WORDS, "encoder_hidden_size": 64},
        vision_config=_PATCHES,
        projection_dim=32,
        image_text_hidden_size=32,
    ),
    "time_series_transformer": recipe(
        "TimeSeriesTransformer",
        "Model",
        {
            **floats("past_values", 27),
            **floats("past_time_features", 27, 2),
            "past_observed_mask": np.ones((1, 27), np.float32),
            **floats("future_values", 8),
            **floats("future_time_features", 8, 2),
        },
        prediction_length=8,
        context_length=24,
        lags_sequence=[1, 2, 3],
        num_time_features=2,
        d_model=32,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        **_SEQ2SEQ,
    ),
}
"""By name."""
