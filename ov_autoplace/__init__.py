"""Decides which device runs each operation of an OpenVINO model."""
