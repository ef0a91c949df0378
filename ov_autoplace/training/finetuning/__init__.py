"""The parts of a fine-tuning run; :func:`ov_autoplace.finetune` puts them together."""
