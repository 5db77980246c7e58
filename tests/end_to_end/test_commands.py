#!/usr/bin/env python3
"""What the commands that read files have in common: how options are written, standard input and
output, what is left behind when one is interrupted."""

import unittest

import support
from support import ASSAY, ROOT, run

PROFILE = ROOT / "tests" / "unit" / "data" / "version-1.events"


class Options(unittest.TestCase):
    def refused(self, *words) -> str:
        result = run([ASSAY, *words])
        self.assertEqual((result.returncode, result.stdout), (125, ""), words)
        self.assertEqual(result.stderr.count("\n"), 1)
        return result.stderr

    def test_empty_values(self):
        for command, word in (("annotate", "--threshold="), ("annotate", "--show="),
                              ("annotate", "--show=,"), ("annotate", "--sort=Ir,"),
                              ("diff", "--mod-filename="), ("export", "--event="),
                              ("list", "--function=")):
            self.assertIn(f"{word}: ", self.refused(command, word, PROFILE))
        self.assertIn("--threshold: the value", self.refused("annotate", "--threshold", "", PROFILE))
        self.assertIn("--include=: a value", self.refused("annotate", "-I", "", PROFILE))

    def test_last_value_counts(self):
        for again, last in ((["--threshold=0", "--threshold=20"], "--threshold=20"),
                            (["--context=0", "--context=3"], "--context=3"),
                            (["--color=never", "--color=always"], "--color=always"),
                            (["--annotate", "--no-annotate"], "--no-annotate")):
            expected = run([ASSAY, "annotate", last, PROFILE])
            result = run([ASSAY, "annotate", *again, PROFILE])
            self.assertEqual((result.returncode, result.stderr), (0, ""), again)
            self.assertEqual(result.stdout, expected.stdout, again)


if __name__ == "__main__":
    unittest.main()
