"""Two examples for the help of every command."""

from __future__ import annotations

__all__ = ["EXAMPLES", "epilog"]

EXAMPLES = {
    "devices": ("devices", "devices --json"),
    "calibrate": ("calibrate -o laptop.json", "calibrate -d CPU --quick -o laptop.json a.xml b.xml"),
    "collect": ("collect a.xml b.xml -o here.npz", "collect *.xml -o here.npz -d CPU --seconds 600"),
    "cache": ("cache ls", "cache rm"),
    "annotate": ("annotate model.xml", "annotate model.onnx -d GPU,CPU --shape input=1,3,224,224 -o placed/"),
    "bench": ("bench model.xml", "bench model.xml -d CPU --seconds 20 --report page.html"),
    "application": ("application detector.xml classifier.xml", "application cameras.json --report page.html"),
    "application decide": ("application detector.xml classifier.xml", "application cameras.json --processes"),
    "application export": (
        "application export cameras.plan.json --model-server config.json",
        "application export speech.plan.json --genai whisper",
    ),
    "application run": (
        "application run cameras.plan.json detector -- python detect.py",
        "application run cameras.plan.json classifier -- ./classify",
    ),
    "explain": ("explain model.xml", "explain model.autoplace.xml --ops"),
    "compare": ("compare before.json after.json", "compare before.json after.json --json"),
    "finetune": ("finetune model.xml -o tuned/", "finetune a.xml b.xml -o tuned/ -d GPU,CPU --network gdp"),
    "pretrain": ("pretrain here.npz -o costs.npz", "pretrain here.npz there.npz -o costs.npz --epochs 60"),
    "fleet": ("fleet join 10.0.0.1:6379", "fleet annotate model.xml --ray 10.0.0.1:6379 -o placed/"),
    "fleet join": ("fleet join 10.0.0.1:6379", "fleet join 10.0.0.1:6379 --dry-run"),
    "fleet devices": ("fleet devices --ray 10.0.0.1:6379", "fleet devices --ray 10.0.0.1:6379 --json"),
    "fleet calibrate": (
        "fleet calibrate --ray 10.0.0.1:6379 -o targets/",
        "fleet calibrate --ray 10.0.0.1:6379 -o targets/ --quick",
    ),
    "fleet annotate": (
        "fleet annotate model.xml --ray 10.0.0.1:6379 -o placed/",
        "fleet annotate model.xml --ray 10.0.0.1:6379 -o placed/ --resume",
    ),
    "fleet collect": (
        "fleet collect a.xml b.xml --ray 10.0.0.1:6379 -o costs/",
        "fleet collect a.xml b.xml --ray 10.0.0.1:6379 -o costs/ --seconds 1800",
    ),
    "extension": ("extension", "extension --json"),
    "build-native": ("build-native", "build-native --json"),
}
"""What to type behind ``ov-autoplace``, by command."""


def epilog(command: str) -> str:
    """The end of a command's help."""
    # A backspace tells click to keep the lines as they are.
    return "\b\n" + "\n".join(["Examples:", *(f"  ov-autoplace {example}" for example in EXAMPLES[command])])
