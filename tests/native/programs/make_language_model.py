"""Writes a small stateful language model with random weights as ``optimum-cli export openvino`` would.

make_language_model.py FOLDER
"""

import sys
import tempfile

import openvino as ov
import torch
from openvino_tokenizers import convert_tokenizer
from optimum.intel import OVModelForCausalLM
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SPECIAL = ["<unk>", "<s>", "</s>"]
TEXT = "the cat sat on a mat and dog ran to red blue house tree sun moon"
WORDS = [*SPECIAL, *TEXT.split()]

(folder,) = sys.argv[1:]
words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=words, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>"
)
torch.manual_seed(0)
network = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        bos_token_id=1,
        eos_token_id=2,
    )
)
with tempfile.TemporaryDirectory() as torch_folder:
    network.eval().save_pretrained(torch_folder)
    exported = OVModelForCausalLM.from_pretrained(torch_folder, export=True, compile=False)
    exported.save_pretrained(folder)
tokenizer.save_pretrained(folder)
to_tokens, to_text = convert_tokenizer(tokenizer, with_detokenizer=True)
ov.save_model(to_tokens, f"{folder}/openvino_tokenizer.xml")
ov.save_model(to_text, f"{folder}/openvino_detokenizer.xml")
print("null")
