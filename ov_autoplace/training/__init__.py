"""Training the network of costs, and fine-tuning policies; most of it needs torch.

Imports ``policy`` and below.
"""
