#!/usr/bin/env python3
"""The documents: what they link to is there, in the source tree and where assay is installed."""

import re
import shutil
import subprocess
import unittest
from pathlib import Path

import support
from support import BUILD, ROOT

LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """Of the headings, as code hosts form them: lower case, blanks as dashes, no punctuation."""
    headings = re.findall(r"^#+ +(.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path, leads_outside=True) -> list[str]:
    broken = []
    for link in LINK.findall(page.read_text()):
        path, _, anchor = link.partition("#")
        if "://" in link or (path.startswith("../") and not leads_outside):
            continue
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{page}: {link}")
    return broken


class Documents(unittest.TestCase):
    def test_source_tree(self):
        pages = [ROOT / name for name in ("README.md", "CHANGELOG.md")]
        for folder in ("docs", "examples", "tests", "bench"):
            pages += (ROOT / folder).rglob("*.md")
        self.assertEqual([link for page in pages for link in broken_links(page)], [])

    @unittest.skipUnless(shutil.which("meson"), "needs meson")
    def test_installed(self):
        folder = support.temporary_folder(self)
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir",
                        folder], check=True, stdout=subprocess.DEVNULL)
        pages = list(folder.rglob("doc/assay/*.md"))
        self.assertIn("manual.md", [page.name for page in pages])
        # The headers, examples and tests that some pages point at are those of the source tree.
        self.assertEqual([link for page in pages
                          for link in broken_links(page, leads_outside=False)], [])


if __name__ == "__main__":
    unittest.main()
