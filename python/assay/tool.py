"""The program assay."""

import os
import shutil
import subprocess
from pathlib import Path


class Error(Exception):
    """What assay said in place of a result."""


def find():
    """The program assay: that of the environment variable ASSAY, the one beside this package's
    folder, or that of PATH."""
    beside = Path(__file__).resolve().parents[2] / "assay"
    found = os.environ.get("ASSAY") or (beside if os.access(beside, os.X_OK) and beside.is_file()
                                        else shutil.which("assay"))
    if not found:
        raise Error("there is no assay: install it, or set the environment variable ASSAY to its path")
    return os.fspath(found)


def call(words):
    """The output of a command of assay."""
    ran = subprocess.run([find(), *words], capture_output=True, text=True)
    if ran.returncode != 0:
        raise Error(ran.stderr.strip().removeprefix("assay: "))
    return ran.stdout
