"""Writes a small BERT with random weights, its tokenizer and both as IR; make_classifier.py FOLDER."""

import sys
import tempfile

import openvino as ov
import torch
from openvino_tokenizers import convert_tokenizer
from optimum.intel import OVModelForSequenceClassification
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXT = "the cat sat on a mat and dog ran to red blue house tree sun moon"
WORDS = [*SPECIAL, *TEXT.split()]

(folder,) = sys.argv[1:]
torch.manual_seed(0)
network = BertForSequenceClassification(
    BertConfig(
        vocab_size=len(WORDS),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        max_position_embeddings=64,
        num_labels=3,
    )
)
with tempfile.TemporaryDirectory() as scratch:
    with open(f"{scratch}/vocab.txt", "w") as file:
        file.write("\n".join(WORDS))
    tokenizer = BertTokenizerFast(f"{scratch}/vocab.txt")
    network.eval().save_pretrained(scratch)
    tokenizer.save_pretrained(scratch)
    exported = OVModelForSequenceClassification.from_pretrained(scratch, export=True, compile=False)
    exported.save_pretrained(folder)
tokenizer.save_pretrained(folder)
ov.save_model(convert_tokenizer(tokenizer), f"{folder}/openvino_tokenizer.xml")
print("null")
