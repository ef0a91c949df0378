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

_TEXT = (
    *("albert", "bert", "camembert", "convbert", "distilbert", "electra", "ernie", "esm", "fnet", "ibert"),
    *("layoutlm", "megatron-bert", "mobilebert", "nystromformer", "rembert", "roberta-prelayernorm"),
    *("roformer", "longformer", "biogpt", "bloom", "cohere", "ctrl", "ernie4_5", "exaone4"),
    *("gemma", "git", "glm", "gpt_bigcode", "gpt_neox", "granite", "helium", "llama", "mistral", "mpt"),
    *("nemotron", "olmo", "openai-gpt", "opt", "persimmon", "phi", "phi3", "qwen2", "qwen3", "smollm3"),
    *("stablelm", "starcoder2", "xglm", "t5", "mt5", "marian", "pegasus", "m2m_100"),
)
_PICTURES = (
    *("beit", "clip_vision_model", "data2vec-vision", "deit", "hiera", "ijepa", "resnet"),
    *("siglip_vision_model", "vit_mae", "vitdet"),
)
_WAVES = ("data2vec-audio", "sew", "unispeech", "unispeech-sat", "wav2vec2", "wav2vec2-conformer", "wavlm")

FAMILIES = (*_TEXT, *_PICTURES, *_WAVES)
"""Types of models, as the library's configurations name them."""


def drawn(family: str, seed: int) -> ov.Model:
    """A network with static shapes, sizes that a seed draws, and random weights.

    Args:
        family: One of :data:`FAMILIES`.
        seed: Of sizes and weights.

    Raises:
        Exception: Whatever the library or the conversion says where sizes do not fit the family.
    """
    import torch
    import transformers

    random = np.random.default_rng(seed)
    sizes = _sizes(random)
    defaults = transformers.AutoConfig.for_model(family)
    share = float(random.choice([0.25, 0.5, 1.0]))
    known = {
        key: _fitted(getattr(defaults, key), value, share)
        for key, value in sizes.items()
        if hasattr(defaults, key)
    }
    config = transformers.AutoConfig.for_model(family, **known)
    config.use_cache = False
    torch.manual_seed(seed)
    network = transformers.AutoModel.from_config(config)
    inputs = _inputs(family, sizes, inspect.signature(network.forward).parameters, random)
    return converted(network, inputs)


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


def _fitted(default: Any, size: Any, share: float) -> Any:
    """A size as a family wants it: where it has one for each stage, a share of the widths, and few layers."""
    if not isinstance(default, (list, tuple)) or isinstance(size, list):
        return default if size is None else size
    return [int(share * one) for one in default] if size is None else [min(size, one) for one in default]


def _inputs(family: str, sizes: dict[str, Any], taken: Any, random: np.random.Generator) -> Inputs:
    if family in _PICTURES:
        return image(sizes["image_size"])
    length = float(random.uniform())
    if family in _WAVES:
        return floats("input_values", int(1000 * 16**length))
    names = [name for name in ("input_ids", "attention_mask", "decoder_input_ids") if name in taken]
    return tokens(*names, count=int(4 * 50**length))
