"""What one entry of the compatibility table is."""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

# Whatever the user's settings are, the programs see the same.
ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "TZ": "UTC",
               "HOME": "/nonexistent", "PYTHONHASHSEED": "0"}


@dataclass(frozen=True)
class Case:
    name: str
    argv: tuple[str, ...]
    stdin: Path | None = None
    closed: tuple[int, ...] = ()  # descriptors that the program starts without
    environment: dict[str, str] = field(default_factory=dict)
    # What must be the same besides the status; of the files, those that match a pattern.
    compared: tuple[str, ...] = ("stdout", "stderr", "files")
    files: tuple[str, ...] = ("*",)
    slow: bool = False  # left out by --fast: takes more than 3 s alone, or needs a large package
    needs: tuple[str, ...] = ()  # programs and files besides argv[0]
    # The command itself puts "$UNDER" before the program that is to run under assay: a server,
    # whose clients and whose supervision are not the subject.
    places_itself: bool = False
    refused: str = ""  # assay must not run it, but say this

    def missing(self) -> str:
        """The first thing that is not installed."""
        for name in (self.argv[0], *self.needs):
            if shutil.which(name, path=ENVIRONMENT["PATH"]) is None and not os.path.exists(name):
                return name
        return ""
