"""Networks for text: encoders, decoders, both together, mixtures of experts, state spaces."""

from __future__ import annotations

from typing import Any

from transformers_kinds.recipes import BODY, VOCABULARY, Recipe, masked, recipe, tokens

_CAUSAL = "ForCausalLM"
_SEQ2SEQ = {
    "vocab_size": VOCABULARY,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "use_cache": False,
}
_BOTH = {**masked(), **tokens("decoder_input_ids", count=8)}


def _encoder(family: str, **sizes: Any) -> Recipe:
    return recipe(family, "Model", masked(), vocab_size=VOCABULARY, **sizes)


def _decoder(family: str, **sizes: Any) -> Recipe:
    return recipe(family, _CAUSAL, masked(), vocab_size=VOCABULARY, use_cache=False, **sizes)


TEXT = {
    "albert": _encoder("Albert", embedding_size=32, **BODY),
    "deberta": _encoder(
        "DebertaV2", relative_attention=True, position_buckets=16, pos_att_type=["c2p", "p2c"], **BODY
    ),
    "squeezebert": _encoder("SqueezeBert", embedding_size=64, **BODY),
    "xlnet": _encoder("XLNet", d_model=64, n_layer=2, n_head=2, d_inner=128),
    "mpnet": _encoder("MPNet", **BODY),
    "llama": _decoder("Llama", num_key_value_heads=1, **BODY),
    "opt": _decoder(
        "OPT", hidden_size=64, ffn_dim=128, num_hidden_layers=2, num_attention_heads=2, word_embed_proj_dim=64
    ),
    "gemma2": _decoder("Gemma2", num_key_value_heads=1, head_dim=32, sliding_window=8, **BODY),
    "t5": recipe(
        "T5",
        "ForConditionalGeneration",
        _BOTH,
        vocab_size=VOCABULARY,
        d_model=64,
        d_kv=32,
        d_ff=128,
        num_layers=2,
        num_heads=2,
        use_cache=False,
    ),
    "marian": recipe(
        "Marian",
        "MTModel",
        _BOTH,
        pad_token_id=0,
        decoder_start_token_id=0,
        max_position_embeddings=32,
        **_SEQ2SEQ,
    ),
    "bart": recipe("Bart", "ForConditionalGeneration", _BOTH, max_position_embeddings=32, **_SEQ2SEQ),
    "mixtral": _decoder(
        "Mixtral", num_local_experts=4, num_key_value_heads=1, experts_implementation="batched_mm", **BODY
    ),
    "olmoe": _decoder(
        "Olmoe",
        num_experts=4,
        num_experts_per_tok=2,
        num_key_value_heads=2,
        experts_implementation="batched_mm",
        **BODY,
    ),
    "mamba": recipe(
        "Mamba",
        _CAUSAL,
        tokens("input_ids"),
        vocab_size=VOCABULARY,
        hidden_size=64,
        state_size=8,
        num_hidden_layers=2,
        use_cache=False,
    ),
    "mamba2": recipe(
        "Mamba2",
        _CAUSAL,
        tokens("input_ids"),
        vocab_size=VOCABULARY,
        hidden_size=64,
        state_size=16,
        num_hidden_layers=2,
        num_heads=4,
        head_dim=32,
        n_groups=1,
        chunk_size=8,
        use_cache=False,
    ),
}
"""By name."""
