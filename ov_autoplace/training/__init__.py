"""Training and fine-tuning the policy; most of it needs torch.

Imports ``plugin`` and below.
"""
