"""Why a placement costs what it costs: its timeline, its trace for Perfetto, and what-ifs.

Imports ``decide`` and below.
"""
