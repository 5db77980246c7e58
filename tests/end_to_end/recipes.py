"""Runs what a document says: its files and its commands, with an installed assay."""

import os
import re
import subprocess
from pathlib import Path

import support
from support import BUILD, run

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
    # A stated environment, because each variable costs a program some instructions at its start.
    return {"LANG": "C.UTF-8", "HOME": str(folder),
            "PATH": f"{prefix / 'bin'}:/usr/bin:/bin:{os.environ['PATH']}",
            "PKG_CONFIG_PATH": str(package.parent), "PKG_CONFIG_SYSROOT_DIR": str(folder),
            "CMAKE_PREFIX_PATH": str(prefix)}


def words(text: str) -> str:
    """Without what depends on the width of columns."""
    return " ".join(text.split())


def comparable(text: str) -> str:
    """Without numbers, which depend on the compiler and on the C library, and without folders."""
    text = re.sub(r"^==\d+==|\S*/(?=\w+\.c\b)", "", text, flags=re.MULTILINE)
    return re.sub(r"0x[0-9a-f]+|\d[\d,.]*", "N", words(text))


def follow_console(test, document: Path, box: str, folder: Path, environment: dict[str, str],
                   outputs: dict[str, str]) -> Path:
    """Types each command behind "$ ". The lines below it must be in its output, in the same order. A line
    "..." stands for any lines. Numbers may differ. Returns the folder, which cd changes."""
    for part in re.split(r"^\$ ", box, flags=re.MULTILINE)[1:]:
        command = re.match(r"(?:.*\\\n)*.*\n", part)[0]
        if command.startswith("cd "):
            folder = folder / command.split()[1]
            continue
        result = run(["bash", "-c", command], cwd=folder, env=environment, stderr=subprocess.STDOUT)
        test.assertEqual(result.returncode, 0, f"{document}: {command}\n{result.stdout}")
        outputs[command.strip()] = result.stdout
        printed = comparable(result.stdout)
        for piece in re.split(r"^\.\.\.$", part[len(command):], flags=re.MULTILINE):
            piece = comparable(piece)
            test.assertIn(piece, printed, f"{document}: {command}\n{result.stdout}")
            printed = printed[printed.index(piece) + len(piece):]
    return folder


def follow(test, document: Path, folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """Does what the document says in a folder. Returns each command's output."""
    outputs = {}
    boxes = re.findall(r"^```(\w+)\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)
    for language, box in boxes:
        if language == "console":
            folder = follow_console(test, document, box, folder, environment, outputs)
        else:
            name = FILE_NAME.match(box)
            test.assertTrue(name, f"{document}: a box without a file name:\n{box}")
            (folder / name[1]).write_text(box)
    return outputs
