#!/usr/bin/env python3
"""KCachegrind, started on a virtual screen, shows the functions of an export with their costs.

Debian: kcachegrind xvfb xauth dbus at-spi2-core python3-dbus. Continuous integration has not got
them, because KDE's libraries are large; without them there is nothing to do here."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import support
from support import ASSAY, PROGRAMS, SKIPPED, installed, profile, read_events, run

SYSTEM_PYTHON = "/usr/bin/python3"  # which Debian's packages are for


def available() -> bool:
    return (installed("kcachegrind", "xvfb-run", "xauth", "dbus-run-session", SYSTEM_PYTHON) and
            Path("/usr/libexec/at-spi-bus-launcher").exists() and
            run([SYSTEM_PYTHON, "-c", "import dbus"]).returncode == 0)


class KCachegrind(unittest.TestCase):
    def texts(self, *command, until) -> list[list[str]]:
        home = support.temporary_folder(self)
        (home / "kcachegrindrc").write_text("[TipOfDay]\nRunOnStart=false\n")
        environment = {**os.environ, **{name: str(home) for name in (
            "HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR")},
            "QT_QPA_PLATFORM": "xcb", "GSETTINGS_BACKEND": "memory"}
        shown = subprocess.run(
            ["xvfb-run", "-a", "-s", "-screen 0 1280x1024x24", "dbus-run-session", "--",
             SYSTEM_PYTHON, Path(__file__).parent / "accessible_texts.py", "40", until, *command],
            env=environment, capture_output=True, text=True, timeout=200)
        if shown.returncode == SKIPPED:
            self.skipTest("Qt does not register with AT-SPI")
        self.assertEqual(shown.returncode, 0, shown.stdout)
        return json.loads(shown.stdout.splitlines()[-1])  # xvfb-run adds what was said on stderr

    def test_functions_and_inlined_ones(self):
        folder = support.temporary_folder(self)
        result = profile([PROGRAMS / "inlining"], "--dump-instr=yes", plugin="used_bytes",
                         out=folder / "events")
        self.assertEqual(result.returncode, 0, result.stderr)
        exported = folder / "exported.callgrind"
        self.assertEqual(run([ASSAY, "export", "--format=callgrind", "-o", exported,
                              folder / "events"]).returncode, 0)
        texts = self.texts("kcachegrind", exported, until="sum_all")
        total = read_events(folder / "events").summary[0]
        self.assertIn(f"Cost: {total:,}".replace(",", " "),
                      " ".join(text for role, text in texts if role == "label"))
        # The list of functions: cost with all that is called, own cost, calls, name, place.
        cells = [text for role, text in texts if role == "tree item"]
        for name, inclusive, own in (("work", 92, 1), ("sum_all", 61, 1), ("sum_cells", 90, 60),
                                     ("leaf", 30, 30)):
            expected = [f"{100 * 64 * lines / total:.2f}" for lines in (inclusive, own)]
            rows = [cells[at - 3:at - 1] for at in range(3, len(cells)) if cells[at] == name]
            self.assertIn(expected, rows, name)


if __name__ == "__main__":
    if not available():
        sys.exit(SKIPPED)
    unittest.main()
