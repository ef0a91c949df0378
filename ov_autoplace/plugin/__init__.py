"""The device AUTOPLACE in OpenVINO: compiling, remembering decisions, the pass, annotated files.

Imports ``explain`` and below.
"""
