"""Fuzzing of everything that reads what somebody else wrote; docs/contributing.md tells how to run it."""
