"""Runs what a document says: its files and its commands, with an installed assay."""

import os
import re
import shlex
from pathlib import Path

import support
from support import BUILD, run

COMMANDS = ("assay", "cc", "cmake", "g++", "meson", "sed")
# The first line of a file in a box names it.
FILE_NAME = re.compile(r"^(?://|/\*) (\w+\.\w+)(?: \*/)?\n")
PREFIX = "usr/local"


def install(folder: Path) -> dict[str, str]:
    """Installs assay there. The environment in which it is found."""
    result = run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", folder])
    if result.returncode != 0:
        raise RuntimeError(result.stdout + result.stderr)
    prefix = next(folder.rglob("bin/assay")).parents[1]
    package = next(prefix.rglob("assay.pc"))
    return {**os.environ, "PATH": f"{prefix / 'bin'}:/usr/bin:/bin:{os.environ['PATH']}",
            "PKG_CONFIG_PATH": str(package.parent), "PKG_CONFIG_SYSROOT_DIR": str(folder),
            "CMAKE_PREFIX_PATH": str(prefix)}


def words(text: str) -> str:
    """Without what depends on the width of columns."""
    return " ".join(text.split())


def follow(test, document: Path, folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """Does what the document says in a folder. Output in boxes must be part of what the command
    before prints. Returns each command's output."""
    outputs = {}
    last = ""
    parts = re.split(r"^```(\w*)\n(.*?)^```$", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    for text, language, box in zip(parts[0::3], parts[1::3] + [""], parts[2::3] + [""]):
        for line in re.findall(r"^    (\S.*)$", text, re.MULTILINE):
            if shlex.split(line)[0] in COMMANDS:
                result = run(["sh", "-c", line], cwd=folder, env=environment)
                test.assertEqual(result.returncode, 0, f"{document}: {line}\n{result.stdout}"
                                                       f"{result.stderr}")
                last = outputs[line] = result.stdout
        if language and box:
            name = FILE_NAME.match(box)
            test.assertTrue(name, f"{document}: a box without a file name:\n{box}")
            (folder / name[1]).write_text(box)
        elif box:
            printed = words(last)
            for line in box.splitlines():
                test.assertIn(words(line), printed, f"{document}: {last}")
    return outputs
