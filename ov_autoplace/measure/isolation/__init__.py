"""Measuring in a child process, so that a plugin that crashes or hangs takes nobody else with it."""
