"""The stages of a decision: one file for each kind of answer.

Which of them run is :data:`ov_autoplace.decide.placer.STAGES`.
"""
