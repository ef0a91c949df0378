"""Networks for text: encoders, decoders, both together, mixtures of experts, state spaces."""

from __future__ import annotations

from transformers_kinds.inputs import BODY, VOCABULARY, Traceable, mask, tokens

__all__ = ["DECODERS", "ENCODERS", "EXPERTS", "STATE_SPACE", "TRANSLATION"]


def _albert() -> Traceable:
    from transformers import AlbertConfig, AlbertModel

    config = AlbertConfig(vocab_size=VOCABULARY, embedding_size=32, **BODY)
    return Traceable(AlbertModel(config), {**tokens(), **mask()}, ["last_hidden_state"])


def _deberta() -> Traceable:
    from transformers import DebertaV2Config, DebertaV2Model

    config = DebertaV2Config(
        vocab_size=VOCABULARY,
        relative_attention=True,
        position_buckets=16,
        pos_att_type=["c2p", "p2c"],
        **BODY,
    )
    return Traceable(DebertaV2Model(config), {**tokens(), **mask()}, ["last_hidden_state"])


def _squeezebert() -> Traceable:
    from transformers import SqueezeBertConfig, SqueezeBertModel

    config = SqueezeBertConfig(vocab_size=VOCABULARY, embedding_size=64, **BODY)
    return Traceable(SqueezeBertModel(config), {**tokens(), **mask()}, ["last_hidden_state"])


def _xlnet() -> Traceable:
    from transformers import XLNetConfig, XLNetModel

    config = XLNetConfig(vocab_size=VOCABULARY, d_model=64, n_layer=2, n_head=2, d_inner=128)
    return Traceable(XLNetModel(config), {**tokens(), **mask()}, ["last_hidden_state"])


def _mpnet() -> Traceable:
    from transformers import MPNetConfig, MPNetModel

    config = MPNetConfig(vocab_size=VOCABULARY, **BODY)
    return Traceable(MPNetModel(config), {**tokens(), **mask()}, ["last_hidden_state"])


def _llama() -> Traceable:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=VOCABULARY, use_cache=False, num_key_value_heads=1, **BODY)
    return Traceable(LlamaForCausalLM(config), {**tokens(), **mask()}, ["logits"])


def _opt() -> Traceable:
    from transformers import OPTConfig, OPTForCausalLM

    config = OPTConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        ffn_dim=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        word_embed_proj_dim=64,
        use_cache=False,
    )
    return Traceable(OPTForCausalLM(config), {**tokens(), **mask()}, ["logits"])


def _gemma2() -> Traceable:
    from transformers import Gemma2Config, Gemma2ForCausalLM

    config = Gemma2Config(
        vocab_size=VOCABULARY, use_cache=False, num_key_value_heads=1, head_dim=32, sliding_window=8, **BODY
    )
    return Traceable(Gemma2ForCausalLM(config), {**tokens(), **mask()}, ["logits"])


def _t5() -> Traceable:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=VOCABULARY, d_model=64, d_kv=32, d_ff=128, num_layers=2, num_heads=2, use_cache=False
    )
    inputs = {**tokens(), **mask(), **tokens(8, "decoder_input_ids")}
    return Traceable(T5ForConditionalGeneration(config), inputs, ["logits"])


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


def _marian() -> Traceable:
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(pad_token_id=0, decoder_start_token_id=0, max_position_embeddings=32, **_SEQ2SEQ)
    inputs = {**tokens(), **mask(), **tokens(8, "decoder_input_ids")}
    return Traceable(MarianMTModel(config), inputs, ["logits"])


def _bart() -> Traceable:
    from transformers import BartConfig, BartForConditionalGeneration

    config = BartConfig(max_position_embeddings=32, **_SEQ2SEQ)
    inputs = {**tokens(), **mask(), **tokens(8, "decoder_input_ids")}
    return Traceable(BartForConditionalGeneration(config), inputs, ["logits"])


def _mixtral() -> Traceable:
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        vocab_size=VOCABULARY,
        num_local_experts=4,
        num_key_value_heads=1,
        use_cache=False,
        experts_implementation="batched_mm",
        **BODY,
    )
    return Traceable(MixtralForCausalLM(config), {**tokens(), **mask()}, ["logits"])


def _olmoe() -> Traceable:
    from transformers import OlmoeConfig, OlmoeForCausalLM

    config = OlmoeConfig(
        vocab_size=VOCABULARY,
        num_experts=4,
        num_experts_per_tok=2,
        num_key_value_heads=2,
        use_cache=False,
        experts_implementation="batched_mm",
        **BODY,
    )
    return Traceable(OlmoeForCausalLM(config), {**tokens(), **mask()}, ["logits"])


def _mamba() -> Traceable:
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(
        vocab_size=VOCABULARY, hidden_size=64, state_size=8, num_hidden_layers=2, use_cache=False
    )
    return Traceable(MambaForCausalLM(config), tokens(), ["logits"])


def _mamba2() -> Traceable:
    from transformers import Mamba2Config, Mamba2ForCausalLM

    config = Mamba2Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        state_size=16,
        num_hidden_layers=2,
        num_heads=4,
        head_dim=32,
        n_groups=1,
        chunk_size=8,
        use_cache=False,
    )
    return Traceable(Mamba2ForCausalLM(config), tokens(), ["logits"])


ENCODERS = {
    "albert": _albert,
    "deberta": _deberta,
    "squeezebert": _squeezebert,
    "xlnet": _xlnet,
    "mpnet": _mpnet,
}
DECODERS = {"llama": _llama, "opt": _opt, "gemma2": _gemma2}
TRANSLATION = {"t5": _t5, "marian": _marian, "bart": _bart}
EXPERTS = {"mixtral": _mixtral, "olmoe": _olmoe}
STATE_SPACE = {"mamba": _mamba, "mamba2": _mamba2}
