"""Networks for sound, for several kinds of input at once, and for time series."""

from __future__ import annotations

from transformers_kinds.inputs import BODY, VOCABULARY, Traceable, image, mask, series, tokens, waveform

__all__ = ["AUDIO", "MULTIMODAL", "SPEECH", "TIME_SERIES", "VOCODERS"]

_WAVE = {
    "conv_dim": [32, 32, 32],
    "conv_kernel": [10, 3, 3],
    "conv_stride": [5, 2, 2],
    "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "vocab_size": 32,
}


def _wav2vec2() -> Traceable:
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    return Traceable(Wav2Vec2ForCTC(Wav2Vec2Config(**_WAVE, **BODY)), waveform(4000), ["logits"])


def _hubert() -> Traceable:
    from transformers import HubertConfig, HubertForCTC

    return Traceable(HubertForCTC(HubertConfig(**_WAVE, **BODY)), waveform(4000), ["logits"])


def _spectrogram_transformer() -> Traceable:
    from transformers import ASTConfig, ASTForAudioClassification

    config = ASTConfig(max_length=128, num_mel_bins=32, **BODY)
    return Traceable(ASTForAudioClassification(config), series(128, 32, name="input_values"), ["logits"])


def _speech_to_text() -> Traceable:
    from transformers import Speech2TextConfig, Speech2TextModel

    config = Speech2TextConfig(
        vocab_size=VOCABULARY,
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        input_feat_per_channel=16,
        conv_channels=64,
        max_source_positions=100,
        max_target_positions=32,
        use_cache=False,
    )
    inputs = {**series(64, 16, name="input_features"), **tokens(8, "decoder_input_ids")}
    return Traceable(Speech2TextModel(config), inputs, ["last_hidden_state"])


def _whisper() -> Traceable:
    from transformers import WhisperConfig, WhisperForAudioClassification

    config = WhisperConfig(
        num_mel_bins=16,
        d_model=64,
        encoder_layers=2,
        encoder_attention_heads=2,
        encoder_ffn_dim=128,
        max_source_positions=50,
    )
    inputs = series(16, 100, name="input_features")
    return Traceable(WhisperForAudioClassification(config), inputs, ["logits"])


def _hifigan() -> Traceable:
    import torch
    from transformers import SpeechT5HifiGan, SpeechT5HifiGanConfig

    config = SpeechT5HifiGanConfig(
        model_in_dim=16,
        upsample_initial_channel=32,
        upsample_rates=[4, 4],
        upsample_kernel_sizes=[8, 8],
        resblock_kernel_sizes=[3, 7],
        resblock_dilation_sizes=[[1, 3], [1, 3]],
    )

    class Waveform(torch.nn.Module):
        """Its answer is a bare tensor; the others have named fields."""

        def __init__(self) -> None:
            super().__init__()
            self.vocoder = SpeechT5HifiGan(config)

        def forward(self, spectrogram: torch.Tensor) -> object:
            from types import SimpleNamespace

            return SimpleNamespace(waveform=self.vocoder(spectrogram))

    return Traceable(Waveform(), series(40, 16, name="spectrogram"), ["waveform"])


def _univnet() -> Traceable:
    from transformers import UnivNetConfig, UnivNetModel

    config = UnivNetConfig(
        model_in_channels=16,
        model_hidden_channels=8,
        num_mel_bins=16,
        resblock_stride_sizes=[4, 4],
        resblock_kernel_sizes=[3, 3],
        resblock_dilation_sizes=[[1, 3], [1, 3]],
        kernel_predictor_hidden_channels=16,
    )
    inputs = {**series(20, 16, name="input_features"), **series(20, 16, name="noise_sequence")}
    return Traceable(UnivNetModel(config), inputs, ["waveforms"])


def _clip() -> Traceable:
    from transformers import CLIPConfig, CLIPModel

    config = CLIPConfig(
        text_config={**BODY, "vocab_size": VOCABULARY, "max_position_embeddings": 16, "eos_token_id": 2},
        vision_config={**BODY, "image_size": 64, "patch_size": 16},
        projection_dim=32,
    )
    inputs = {**tokens(), **image(64), **mask()}
    return Traceable(CLIPModel(config), inputs, ["logits_per_image"])


def _siglip() -> Traceable:
    from transformers import SiglipConfig, SiglipModel

    config = SiglipConfig(
        text_config={**BODY, "vocab_size": VOCABULARY, "max_position_embeddings": 16, "projection_size": 64},
        vision_config={**BODY, "image_size": 64, "patch_size": 16},
    )
    return Traceable(SiglipModel(config), {**tokens(), **image(64)}, ["logits_per_image"])


def _vilt() -> Traceable:
    import torch
    from transformers import ViltConfig, ViltModel

    config = ViltConfig(image_size=64, patch_size=16, vocab_size=VOCABULARY, max_image_length=-1, **BODY)
    pixels = {"pixel_mask": torch.ones(1, 64, 64, dtype=torch.int64)}
    inputs = {**tokens(), **mask(), **image(64), **pixels}
    return Traceable(ViltModel(config), inputs, ["last_hidden_state", "pooler_output"])


def _blip() -> Traceable:
    from transformers import BlipConfig, BlipForImageTextRetrieval

    text = {**BODY, "vocab_size": VOCABULARY, "max_position_embeddings": 16, "encoder_hidden_size": 64}
    config = BlipConfig(
        text_config=text,
        vision_config={**BODY, "image_size": 64, "patch_size": 16},
        projection_dim=32,
        image_text_hidden_size=32,
    )
    inputs = {**tokens(), **image(64), **mask()}
    return Traceable(BlipForImageTextRetrieval(config), inputs, ["itm_score"])


def _time_series_transformer() -> Traceable:
    import torch
    from transformers import TimeSeriesTransformerConfig, TimeSeriesTransformerModel

    config = TimeSeriesTransformerConfig(
        prediction_length=8,
        context_length=24,
        lags_sequence=[1, 2, 3],
        num_time_features=2,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        use_cache=False,
    )
    inputs = {
        **series(27, name="past_values"),
        **series(27, 2, name="past_time_features"),
        "past_observed_mask": torch.ones(1, 27),
        **series(8, name="future_values"),
        **series(8, 2, name="future_time_features"),
    }
    return Traceable(TimeSeriesTransformerModel(config), inputs, ["last_hidden_state"])


AUDIO = {"wav2vec2": _wav2vec2, "spectrogram_transformer": _spectrogram_transformer, "hubert": _hubert}
SPEECH = {"whisper": _whisper, "speech_to_text": _speech_to_text}
VOCODERS = {"hifigan": _hifigan, "univnet": _univnet}
MULTIMODAL = {"clip": _clip, "siglip": _siglip, "vilt": _vilt, "blip": _blip}
TIME_SERIES = {
    "time_series_transformer": _time_series_transformer,
}
