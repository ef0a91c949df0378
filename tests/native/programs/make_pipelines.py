"""Writes small models with random weights as exporters leave them.

make_pipelines.py FOLDER KIND...

Kinds are ``speech``, ``vision_language`` and ``image``, which needs no torch.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as ops
from openvino_tokenizers import convert_tokenizer
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

TEXT = "the cat sat on a mat and dog ran to red blue house tree sun moon"
WIDE = 8  # of what the image pipeline's text encoder makes of a word
SIDE = 28  # of images that are looked at


def made_tokenizer(folder, special, beginning, end):
    """A tokenizer of words, which is written beside a model."""
    words = [*special, *TEXT.split()]
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=end))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made,
        unk_token=end,
        bos_token=beginning,
        eos_token=end,
        pad_token=end,
        model_max_length=77,
        additional_special_tokens=special,
    )
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    folder.mkdir(parents=True)
    tokenizer.save_pretrained(folder)
    to_tokens, to_text = convert_tokenizer(tokenizer, with_detokenizer=True)
    ov.save_model(to_tokens, folder / "openvino_tokenizer.xml")
    ov.save_model(to_text, folder / "openvino_detokenizer.xml")
    return tokenizer, len(words)


def exported(folder, network_class, config, model_class, *processors):
    """Export a network of torch with random weights."""
    import torch

    torch.manual_seed(0)
    network = network_class(config)
    with tempfile.TemporaryDirectory() as torch_folder:
        for saved in (network.eval(), *processors):
            saved.save_pretrained(torch_folder)
        model_class.from_pretrained(torch_folder, export=True, compile=False).save_pretrained(folder)
    for processor in processors:
        processor.save_pretrained(folder)


def speech(folder):
    """A Whisper."""
    from optimum.intel import OVModelForSpeechSeq2Seq
    from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

    special = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|translate|>", "<|transcribe|>"]
    tokenizer, words = made_tokenizer(folder, special, special[0], special[0])
    config = WhisperConfig(
        vocab_size=words,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        num_mel_bins=80,
        max_target_positions=64,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
        decoder_start_token_id=1,
        suppress_tokens=[],
        begin_suppress_tokens=[0],
    )
    exported(
        folder,
        WhisperForConditionalGeneration,
        config,
        OVModelForSpeechSeq2Seq,
        WhisperFeatureExtractor(),
        tokenizer,
    )
    generation = json.loads((folder / "generation_config.json").read_text())
    generation |= {"lang_to_id": {"<|en|>": 2}, "task_to_id": {"translate": 3, "transcribe": 4}}
    generation |= {"is_multilingual": True, "no_timestamps_token_id": 5, "max_length": 20}
    (folder / "generation_config.json").write_text(json.dumps(generation))


def vision_language(folder):
    """A LLaVA."""
    from optimum.intel import OVModelForVisualCausalLM
    from transformers import (
        CLIPImageProcessor,
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )

    tokenizer, words = made_tokenizer(folder, ["</s>", "<s>", "<image>"], "<s>", "</s>")
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 2}
    language = LlamaConfig(
        vocab_size=words, num_hidden_layers=1, num_key_value_heads=2, bos_token_id=1, eos_token_id=0, **sizes
    )
    vision = CLIPVisionConfig(num_hidden_layers=2, image_size=SIDE, patch_size=14, projection_dim=32, **sizes)
    config = LlavaConfig(
        text_config=language.to_dict(),
        vision_config=vision.to_dict(),
        image_token_index=2,
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
    )
    images = CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})
    processor = LlavaProcessor(
        images,
        tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token="<image>",
        chat_template=tokenizer.chat_template,
    )
    exported(folder, LlavaForConditionalGeneration, config, OVModelForVisualCausalLM, processor)
    images.save_pretrained(folder)


def parameter(name, kind, *shape):
    """An input with a name."""
    made = ops.parameter(ov.PartialShape(list(shape)), kind, name=name)
    made.output(0).set_names({name})
    return made


def convolution(value, *shape):
    """A convolution of one pixel."""
    weights = ops.constant(np.random.default_rng(0).normal(size=shape).astype(np.float32) / 8)
    return ops.convolution(value, weights, [1, 1], [0, 0], [0, 0], [1, 1])


def image(folder):
    """What Stable Diffusion is made of, with one layer each."""
    made_tokenizer(
        folder / "tokenizer", ["<|startoftext|>", "<|endoftext|>"], "<|startoftext|>", "<|endoftext|>"
    )

    def part(name, output, result, *inputs, **config):
        result.output(0).set_names({output})
        (folder / name).mkdir()
        ov.save_model(ov.Model([result], list(inputs)), folder / name / "openvino_model.xml")
        (folder / name / "config.json").write_text(json.dumps(config))

    ids = parameter("input_ids", np.int64, -1, 77)
    words = ops.constant(np.random.default_rng(0).normal(size=(64, WIDE)).astype(np.float32))
    states = ops.relu(ops.gather(words, ids, ops.constant(0)))
    sizes = {"max_position_embeddings": 77, "num_hidden_layers": 2}
    part("text_encoder", "last_hidden_state", states, ids, **sizes)

    sample = parameter("sample", np.float32, -1, 4, -1, -1)
    step = parameter("timestep", np.int64, -1)
    states = parameter("encoder_hidden_states", np.float32, -1, 77, WIDE)
    hint = ops.unsqueeze(ops.reduce_mean(states, ops.constant([1, 2]), keep_dims=True), ops.constant([3]))
    noise = ops.add(convolution(sample, 4, 4, 1, 1), hint)
    noise = ops.add(noise, ops.multiply(ops.convert(step, "f32"), ops.constant(np.float32(1e-6))))
    sizes = {"in_channels": 4, "sample_size": 8, "time_cond_proj_dim": None}
    part("unet", "out_sample", noise, sample, step, states, **sizes)

    latent = parameter("latent_sample", np.float32, -1, 4, -1, -1)
    eight = ops.constant(np.full(2, 8, np.float32))
    pixels = ops.interpolate(
        convolution(latent, 3, 4, 1, 1), eight, "nearest", "scales", axes=ops.constant([2, 3])
    )
    sizes = {"in_channels": 3, "out_channels": 3, "latent_channels": 4, "block_out_channels": [8, 8, 8, 8]}
    part("vae_decoder", "image", pixels, latent, scaling_factor=0.18215, **sizes)

    pixels = parameter("sample", np.float32, -1, 3, -1, -1)
    weights = ops.constant(np.full((8, 3, 8, 8), 0.01, np.float32))
    moments = ops.convolution(pixels, weights, [8, 8], [0, 0], [0, 0], [1, 1])
    part("vae_encoder", "latent_parameters", moments, pixels, scaling_factor=0.18215, **sizes)

    (folder / "scheduler").mkdir()
    steps = {"num_train_timesteps": 1000, "beta_start": 0.00085, "beta_end": 0.012}
    kinds = {"_class_name": "DDIMScheduler", "beta_schedule": "scaled_linear", "clip_sample": False}
    (folder / "scheduler/scheduler_config.json").write_text(json.dumps(kinds | steps))
    (folder / "model_index.json").write_text(json.dumps({"_class_name": "StableDiffusionPipeline"}))


target, *wanted = sys.argv[1:]
for kind in wanted:
    {"speech": speech, "vision_language": vision_language, "image": image}[kind](Path(target) / kind)
print("null")
