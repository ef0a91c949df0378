"""Targets of machines known from public figures only; ``Target.load`` reads them by name."""
