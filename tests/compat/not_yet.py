"""The cases that are known to fail, and why. `tests/compat/run --not-yet` runs these alone and
shows which can be taken from the list."""

import fnmatch

NOT_YET: dict[str, str] = {}


def reason(name: str) -> str:
    """Why the case cannot be expected to be the same; empty if it can."""
    return next((why for pattern, why in NOT_YET.items() if fnmatch.fnmatch(name, pattern)), "")
