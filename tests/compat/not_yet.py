"""The cases that are known to fail, and why. `tests/compat/run --not-yet` runs these alone and
shows which can be taken from the list."""

import fnmatch
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))
from support import allows_base_instructions  # noqa: E402

NOT_YET: dict[str, str] = {}
if not allows_base_instructions():
    NOT_YET |= dict.fromkeys(
        ("gs_segment base", "jumps through_fs", "thread_ends filtered",
         "thread_ends without_arch_prctl"),
        "the kernel does not say that programs may write the bases of fs and gs (FSGSBASE)")


def reason(name: str) -> str:
    """Why the case cannot be expected to be the same; empty if it can."""
    return next((why for pattern, why in NOT_YET.items() if fnmatch.fnmatch(name, pattern)), "")
