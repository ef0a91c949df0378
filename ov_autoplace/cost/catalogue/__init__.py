"""Targets of machines known from public figures only; ``load_target`` reads them by name."""
