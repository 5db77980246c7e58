#!/usr/bin/env python3
"""Makes the pictures of docs/reference/report.md, in docs/images."""

import shutil
import subprocess
from pathlib import Path

import test_report
from browser import Browser
from support import ASSAY, ROOT

PICTURES = [  # name, view, width, height, dark
    ("report-summary", "overview/Cy", 1280, 560, False),
    ("report-source", "source/D1mr", 1280, 720, True),
    ("report-instructions", "source/Ir//instructions", 1280, 560, False),
    ("report-flame-graph", "flame/Refs", 1280, 440, True),
    ("report-cache-lines", "lines/ReadB", 1280, 720, False),
    ("report-narrow", "overview/Cy", 390, 844, False),
    ("report-narrow-dark", "functions/D1mr", 390, 844, True),
]

DIFFERENCE = ("report-difference", "source/Ir", 1280, 560, False)
FUNCTIONS = ("report-functions", "functions/Cy", 1280, 560, False)
HEAP = ("report-heap", "heap", 1280, 720, False)


def main():
    folder = Path("/tmp/walk")  # as the pictures show it
    folder.mkdir()
    page = test_report.make_report(folder, "walk.html", test_report.make_profile(folder))
    versions = test_report.make_report(folder, "versions.html", "--diff",
                                       *test_report.make_versions(folder))
    heap = test_report.make_report(folder, "heap.html", test_report.make_blocks(folder))
    subprocess.run([ASSAY, "-q", "--plugin=cache", "--contexts", "--out=few.out", "--", "./walk"], check=True,
                   stdout=subprocess.DEVNULL, cwd=folder)
    few = test_report.make_report(folder, "few.html", "few.out")
    images = ROOT / "docs" / "images"
    images.mkdir(exist_ok=True)
    browser = Browser()
    try:
        for of, picture in [*((page, each) for each in PICTURES), (versions, DIFFERENCE), (heap, HEAP), (few, FUNCTIONS)]:
            name, view, width, height, dark = picture
            browser.open(f"{of}#{view}", width, height, dark)
            path = images / f"{name}.png"
            browser.screenshot(path)
            subprocess.run(["convert", path, "-strip", "+dither", "-colors", "128", f"PNG8:{path}"],
                           check=True)
    finally:
        browser.close()
        shutil.rmtree(folder)


main()
