"""Networks of the transformers library at sizes that are drawn, to train the network of costs on.

Predictions are judged by other families of the library. Many of its families are built alike, so that some of
these have relatives here.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import openvino as ov

from transformers_kinds.recipes import Inputs, converted, floats, image, tokens

FAMILIES = (
    *("aimv2_vision_model", "albert", "apertus", "apertus1p5_text", "arcee", "bailing_hybrid", "bamba"),
    *("beam", "beit", "bert", "bert-generation", "biogpt", "bitnet", "bloom", "camembert", "canine"),
    *("chinese_clip_vision_model", "clip_text_model", "clip_vision_model", "cohere", "cohere2", "convbert"),
    *("ctrl", "cvt", "cwm", "data2vec-audio", "data2vec-vision", "deepseek_v4", "deit", "diffllama"),
    *("dinov2_with_registers", "dinov3_convnext", "dinov3_vit", "distilbert", "doge", "dory", "dpr"),
    *("electra", "ernie", "ernie4_5", "ernie4_5_moe", "esm", "eurobert", "exaone4", "exaone_moe"),
    *("falcon_mamba", "flex_olmo", "flint", "fnet", "fsmt", "gemma", "gemma3_text", "git", "glm", "glm4"),
    *("glm4_moe", "gpt_bigcode", "gpt_neox", "gpt_neox_japanese", "gpt_oss", "granite", "granitemoe"),
    *("granitemoe_swa", "gte", "helium", "hiera", "hunyuan_v1_dense", "hunyuan_v1_moe", "hy_v3", "ibert"),
    *("ijepa", "imagegpt", "inkling2_loop_text", "inkling2_text", "inkling_text", "internlm3"),
    *("internvl_vision", "jetmoe", "jina_embeddings_v3", "kimi_linear", "kolibri1", "layoutlm", "led"),
    *("llama", "llama4_text", "longformer", "longt5", "m2m_100", "marian", "markuplm", "megatron-bert"),
    *("mellum", "minimax", "ministral", "mistral", "mlcd_vision_model", "mobilebert", "mobilenet_v2", "mpt"),
    *("mra", "mt5", "mvp", "nanochat", "nemotron", "nllb-moe", "nomic_bert", "nystromformer", "olmo"),
    *("olmo3", "openai-gpt", "openai_privacy_filter", "opt", "pegasus", "persimmon", "phi", "phi3", "phimoe"),
    *("pixio", "plbart", "qwen2", "qwen3", "qwen3_moe", "qwen3_vl_moe_text", "radio", "recurrent_gemma"),
    *("rembert", "resnet", "roberta-prelayernorm", "roc_bert", "roformer", "sam_vision_model", "sarvam_mla"),
    *("sarvam_moe", "sew", "sew-d", "siglip_vision_model", "smollm3", "solar_open", "splinter", "stablelm"),
    *("starcoder2", "swiftformer", "swinv2", "switch_transformers", "t5", "tapas", "tipsv2_vision_model"),
    *("ultrabert", "umt5", "unispeech", "unispeech-sat", "vaultgemma", "visual_bert", "vit_mae", "vit_msn"),
    *("vitdet", "wav2vec2", "wav2vec2-conformer", "wavlm", "xglm", "xlm-roberta", "xlstm", "yolos", "yoso"),
    "zaya",
)
"""Types of models to train on, as the library's configurations name them."""

HELD_OUT = (
    *("afmoe", "aria_text", "blenderbot", "blenderbot-small", "cohere2_moe", "cpmant", "data2vec-text"),
    *("deberta-v2", "exaone", "falcon_h1", "granitemoeshared", "hgnet_v2", "jamba", "laguna", "lfm2"),
    *("minimax_m2", "minimax_m3_vl_text", "modernbert", "muse_spark_text", "nemotron_h", "olmo2", "pvt_v2"),
    *("qwen2_moe", "roberta", "seed_oss"),
)
"""Types that nothing is trained on: a fifth of those that were added last, by a checksum of their names."""


def drawn(family: str, seed: int, few_tokens: bool = False) -> ov.Model:
    """A network with static shapes, sizes that a seed draws, and random weights.

    Args:
        family: One of :data:`FAMILIES`, or of :data:`HELD_OUT`.
        seed: Of sizes and weights.
        few_tokens: It reads less than eight, as a decoder does at each step: then reading the weights is most
            of the work.

    Raises:
        Exception: Whatever the library or the conversion says where sizes do not fit the family.
    """
    import torch
    import transformers

    random = np.random.default_rng(seed)
    sizes = _sizes(random)
    sizes |= _experts(np.random.default_rng((seed, 1)), sizes["hidden_size"])
    sizes |= _scans(np.random.default_rng((seed, 2)), sizes["hidden_size"])
    defaults = transformers.AutoConfig.for_model(family)
    share = float(random.choice([0.25, 0.5, 1.0]))
    known = {
        key: _fitted(getattr(defaults, key), value, share)
        for key, value in sizes.items()
        if hasattr(defaults, key)
    }
    # Experts whose weights are gathered by token; those of other implementations are not converted.
    config = transformers.AutoConfig.for_model(family, experts_implementation="batched_mm", **known)
    config.use_cache = False
    torch.manual_seed(seed)
    network = transformers.AutoModel.from_config(config)
    return converted(network, _inputs(network, sizes, random, few_tokens))


def _sizes(random: np.random.Generator) -> dict[str, Any]:
    """Sizes under the names that configurations give them."""
    heads = int(random.choice([2, 4, 8]))
    hidden = heads * int(random.choice([16, 32, 64]))
    patch = int(random.choice([4, 8, 16]))
    wave = int(random.choice([16, 32, 64, 128]))
    return {
        "hidden_size": hidden,
        "num_hidden_layers": int(random.integers(1, 4)),
        "num_attention_heads": heads,
        "num_key_value_heads": int(random.choice([1, heads])),
        "head_dim": hidden // heads,
        "intermediate_size": hidden * int(random.choice([2, 3, 4])),
        "embedding_size": int(random.choice([hidden, hidden // 2])),
        "vocab_size": int(random.choice([200, 1000, 4000])),
        "pad_token_id": 0,
        "max_position_embeddings": 512,
        "attn_implementation": str(random.choice(["eager", "sdpa"])),
        # Of encoders with decoders.
        "d_kv": hidden // heads,
        "d_ff": hidden * 2,
        "decoder_layers": int(random.integers(1, 4)),
        "encoder_ffn_dim": hidden * 2,
        "decoder_ffn_dim": hidden * 2,
        "decoder_attention_heads": heads,
        # Of pictures, and of sounds.
        "image_size": patch * int(random.integers(3, 15)),
        "patch_size": patch,
        "hidden_sizes": None,
        "depths": int(random.integers(1, 3)),
        "conv_dim": [wave] * 3,
        "conv_kernel": [10, 3, 3],
        "conv_stride": [5, 2, 2],
        "num_conv_pos_embeddings": 16,
        "num_conv_pos_embedding_groups": 4,
    }


def _experts(random: np.random.Generator, hidden: int) -> dict[str, int]:
    """Sizes of mixtures of experts, under the names that configurations give them."""
    experts = int(random.choice([4, 8, 16]))
    return {
        "num_experts": experts,
        "num_local_experts": experts,
        "n_routed_experts": experts,
        "num_experts_per_tok": int(random.choice([1, 2, 4])),
        "moe_intermediate_size": hidden * int(random.choice([1, 2])),
        "shared_expert_intermediate_size": hidden,
        "n_group": 1,
        "topk_group": 1,
    }


def _scans(random: np.random.Generator, hidden: int) -> dict[str, int]:
    """Sizes of state spaces with heads, under the names that configurations give them."""
    heads = int(random.choice([4, 8, 16]))
    return {
        "mamba_n_heads": heads,
        "mamba_d_head": 2 * hidden // heads,
        "mamba_chunk_size": int(random.choice([16, 32, 64, 128])),
    }


def _fitted(default: Any, size: Any, share: float) -> Any:
    """A size as a family wants it: where it has one for each stage, a share of the widths, and few layers."""
    if not isinstance(default, (list, tuple)):
        return default if size is None or isinstance(size, list) else size
    if isinstance(size, list):
        return size
    return [int(share * one) for one in default] if size is None else [min(size, one) for one in default]


def _inputs(network: Any, sizes: dict[str, Any], random: np.random.Generator, few_tokens: bool) -> Inputs:
    if network.main_input_name == "pixel_values":
        return image(sizes["image_size"])
    length = float(random.uniform())
    if network.main_input_name == "input_values":
        return floats("input_values", int(1000 * 16**length))
    taken = inspect.signature(network.forward).parameters
    names = [name for name in ("input_ids", "attention_mask", "decoder_input_ids") if name in taken]
    return tokens(*names, count=int(8**length if few_tokens else 4 * 50**length))
