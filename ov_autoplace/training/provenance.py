"""Where a checkpoint comes from: what its card needs so that somebody else can make it again."""

from __future__ import annotations

import datetime
import hashlib
import platform
import subprocess
from pathlib import Path

import torch

from ov_autoplace._version import __version__
from ov_autoplace.policy.networks.messages import message_library

__all__ = ["data_digest", "origin"]


def origin() -> dict[str, str]:
    """Version, commit (where the package runs from a checkout), date, and versions that decide bits."""
    return {
        "ov_autoplace": __version__,
        "commit": _commit(),
        "date": datetime.date.today().isoformat(),
        "torch": torch.__version__,
        "messages": message_library(),
        "python": platform.python_version(),
    }


def data_digest(folder: Path) -> str:
    """Hash over the names and contents of a folder's workloads."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.npz")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _commit() -> str:
    """The checkout's commit, with a ``+`` when something was changed since; ``unknown`` outside of one."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        answer = subprocess.run(
            ["git", "-C", str(here), *arguments], capture_output=True, text=True, check=True, timeout=10
        )
        return answer.stdout.strip()

    try:
        commit = git("rev-parse", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(here.parent))
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return f"{commit}+" if changed else commit
