#!/usr/bin/env python3
"""Makes machine files literals of C++: embed.py OUTPUT FILE..."""

import sys
from pathlib import Path


def main(output, *names):
    rows = []
    for name in sorted(names):
        text = Path(name).read_text()
        if ")~~~~" in text:
            sys.exit(f"{name} contains )~~~~")
        rows.append(f'    {{"{Path(name).stem}", R"~~~~({text})~~~~"}},')
    Path(output).write_text("\n".join(
        ['#include "plugins/machine/machine_file.h"', "", "namespace machine {", "",
         "const std::vector<ShippedMachine> kShippedMachines = {", *rows, "};", "",
         "}  // namespace machine", ""]))


main(*sys.argv[1:])
