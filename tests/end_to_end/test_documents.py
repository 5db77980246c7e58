#!/usr/bin/env python3
"""The documents: what they link to is there, in the source tree and where assay is installed; each
command has a man page, made of a template and of the tables that its --help shows."""

import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import recipes
import support
from support import ASSAY, BUILD, ROOT, run

PAGES = BUILD / "docs"
TEMPLATES = ROOT / "docs" / "man"
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """Of the headings, as code hosts form them: lower case, blanks as dashes, no punctuation."""
    headings = re.findall(r"^#+ +(.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path, folder=ROOT) -> list[str]:
    """Those that lead nowhere, or out of a folder."""
    broken = []
    for link in LINK.findall(page.read_text()):
        path, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = (page.parent / path if path else page).resolve()
        if not target.exists() or not target.is_relative_to(folder) or (anchor and anchor not in anchors(target)):
            broken.append(f"{page}: {link}")
    return broken


class Documents(unittest.TestCase):
    def test_source_tree(self):
        pages = [ROOT / name for name in ("README.md", "CHANGELOG.md")]
        for folder in ("examples", "sdk", "tests", "bench"):
            pages += (ROOT / folder).rglob("*.md")
        broken = [link for page in pages for link in broken_links(page)]
        # docs/ is installed alone.
        for page in (ROOT / "docs").rglob("*.md"):
            broken += broken_links(page, ROOT / "docs")
        self.assertEqual(broken, [])

    def test_files_of_the_architecture(self):
        text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
        named = re.findall(r"`((?:framework|include|plugins|tools)/[\w/.]*)`", text)
        self.assertGreater(len(named), 30)
        self.assertEqual([name for name in named if not (ROOT / name).exists()], [])

    def test_options(self):
        """docs/reference/options.md is what man-page of the build prints."""
        page = ROOT / "docs" / "reference" / "options.md"
        self.assertEqual(run([BUILD / "man-page"]).stdout, page.read_text(),
                         f"build/man-page > {page.relative_to(ROOT)} mends it")

    def test_abi(self):
        """The page of the ABI names each function of the interface."""
        page = (ROOT / "docs" / "reference" / "abi.md").read_text()
        for header in ("trace_parse.h", "trace_vlist.h", "vprofiler.h"):
            text = (ROOT / "include" / "assay" / header).read_text()
            functions = set(re.findall(r"\b((?:trace|vp)_[a-z0-9_]*(?<!_t))\s*\(", text))
            self.assertTrue(functions or header == "vprofiler.h", header)
            self.assertEqual([name for name in sorted(functions) if name not in page], [], header)

    def test_events_file(self):
        """Its page names each keyword that the reader knows."""
        page = (ROOT / "docs" / "reference" / "events-file.md").read_text()
        source = (ROOT / "framework" / "events" / "parser_extensions.cpp").read_text()
        keywords = set(re.findall(r'keyword [!=]= "([\w-]+)"', source))
        self.assertGreater(len(keywords), 8)
        self.assertEqual([word for word in sorted(keywords)
                          if not re.search(rf'["`|]{word}\b|^ +"?{word} ', page, re.MULTILINE)], [])

    def test_options_in_commands(self):
        """Commands of the documentation have options that exist."""
        known = set(re.findall(r"`(--[\w-]+)", (ROOT / "docs" / "reference" / "options.md").read_text()))
        known |= {"--help", "--version", "--line", "--OPTION", "--partition"}  # of an own profiler; of Slurm
        unknown = []
        for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
            text = re.sub(r"```(?!console).*?```", "", page.read_text(), flags=re.DOTALL)
            for command in re.findall(r"^(?:    |\$ )(?:\S+ )*?assay (.*)$", text, re.MULTILINE):
                for option in re.findall(r"(?<![\w-])--(?:\w+\.)?([A-Za-z][\w-]*)", command.partition(" -- ")[0]):
                    if f"--{option}" not in known:
                        unknown.append(f"{page.name}: --{option}")
        self.assertEqual(unknown, [])

    def test_prose(self):
        checked = run([ROOT / "tests" / "prose"])
        self.assertEqual(checked.returncode, 0, checked.stdout)

    @support.needs("meson")
    def test_installed(self):
        folder = support.temporary_folder(self)
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir",
                        folder], check=True, stdout=subprocess.DEVNULL)
        pages = list(next(folder.rglob("doc/assay")).rglob("*.md"))
        self.assertIn("first-steps.md", [page.name for page in pages])
        self.assertEqual([link for page in pages for link in broken_links(page, folder)], [])

        installed = {page.name: page.read_text() for page in folder.rglob("man1/*.1")}
        self.assertEqual(installed, {page.stem: (PAGES / page.stem).read_text()
                                     for page in TEMPLATES.iterdir()})


@support.needs("gcc", "meson")
class Guides(unittest.TestCase):
    def test_commands(self):
        """Of all pages with consoles, in a copy of the examples: what is shown is what is printed."""
        shared = support.temporary_folder(self)
        environment = recipes.install(shared / "root")
        pages = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
                 if "\n```console\n" in page.read_text()
                 and page.name != "write-a-profiler.md"]  # test_sdk.py
        self.assertGreater(len(pages), 5)
        for page in pages:
            with self.subTest(page.name):
                folder = shared / page.stem
                shutil.copytree(ROOT / "examples", folder / "examples")
                recipes.follow(self, page, folder, environment)


OPTION = r"(?<![\w-])--?[A-Za-z][\w-]*"
PLUGINS = ("bbv", "branch", "cache", "classic", "effective_address", "opcode_mix", "prefetch",
           "python", "reuse", "struct_layout", "syscalls", "used_bytes", "working_set")


def options_of_help(text: str) -> set[str]:
    """Names at the beginning of the lines of a table."""
    tags = re.findall(r"^  (-[^\s,]+(?:, -[^\s,]+)*)", text, re.MULTILINE)
    return {name for tag in tags for name in re.findall(OPTION, tag)}


def texts_of_help(text: str) -> list[str]:
    """What stands in the second column of the options."""
    table = text.partition("Options")[2].partition("\n\n")[2].partition("\n\n")[0]
    rows = re.split(r"^  (?=-)", table, flags=re.MULTILINE)[1:]
    return [" ".join(row.partition("  " if "  " in row.partition("\n")[0] else "\n")[2].split())
            for row in rows]


def options_of_man_page(text: str) -> set[str]:
    tags = re.findall(r"^\.T[PQ]\n(.*)", text, re.MULTILINE)
    return {name for tag in tags
            for name in re.findall(OPTION, re.sub(r"\\f.", " ", tag.replace("\\-", "-")))}


class ManPages(unittest.TestCase):
    def commands(self) -> list[str]:
        others = run([ASSAY, "--help"]).stdout.partition("Other commands")[2]
        return ["run", *re.findall(r"^  assay (\S+) ", others, re.MULTILINE)]

    def test_each_command_has_a_page_and_each_page_a_command(self):
        pages = {page.name for page in PAGES.glob("*.1")}
        self.assertEqual(pages, {"assay.1", *(f"assay-{name}.1" for name in self.commands())})
        self.assertEqual(pages, {page.stem for page in TEMPLATES.iterdir()})
        overview = (PAGES / "assay.1").read_text().replace("\\-", "-")
        for name in self.commands():
            self.assertIn(f"\n.BR assay-{name} (1)", overview)
            self.assertIn(f".TP\n\\fBassay {name}\\fR ", overview)
        version = run([ASSAY, "--version"]).stdout.strip()
        for page in pages:
            text = (PAGES / page).read_text()
            self.assertTrue(text.startswith(".TH ") and f'"{version}"' in text.splitlines()[0])
            self.assertNotRegex(text, "@[A-Z]+[ @]")

    def test_options_are_those_of_help(self):
        of_profilers = options_of_help(run([ASSAY, "plugins", *PLUGINS]).stdout)
        self.assertIn("--D1", of_profilers)
        for name in self.commands():
            with self.subTest(name):
                shown = options_of_help(run([ASSAY, name, "--help"]).stdout)
                documented = options_of_man_page((PAGES / f"assay-{name}.1").read_text())
                self.assertIn("--help", documented)
                if name not in ("plugins", "completion"):
                    self.assertIn("Exit status: ", run([ASSAY, name, "--help"]).stdout)
                if name == "run":
                    shown |= of_profilers
                if name in ("plugins", "completion"):  # their help is no table
                    shown |= {"-h", "--help", "--version"}
                self.assertEqual(documented, shown)

    @support.needs("groff")
    def test_groff_has_no_objection(self):
        for page in PAGES.glob("*.1"):
            checked = run(["groff", "-man", "-ww", "-Tutf8", "-z", page])
            self.assertEqual((checked.returncode, checked.stderr), (0, ""), page.name)

    @support.needs("man", "groff")
    def test_man_shows_what_help_says(self):
        for name in self.commands():
            shown = run(["man", "--warnings", "--nh", "-l", PAGES / f"assay-{name}.1"],
                        env={**os.environ, "MANWIDTH": "1000", "LC_ALL": "C.UTF-8"})
            self.assertEqual((shown.returncode, shown.stderr), (0, ""), name)
            page = " ".join(shown.stdout.split())
            for text in texts_of_help(run([ASSAY, name, "--help"]).stdout):
                self.assertIn(text[0].upper() + text[1:] + ".", page, name)


if __name__ == "__main__":
    unittest.main()
