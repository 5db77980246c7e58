#!/usr/bin/env python3
"""Makes the parts of a page literals of C++: embed.py OUTPUT HEADER NAMESPACE FILE...

The styles (.css) become one, in their order, and so do the scripts. What stands in the page's <style>
and <script> elements must not end them.
"""

import sys
from pathlib import Path

PIECE = 8000  # bytes: compilers limit the length of a literal


def pieces(text: str) -> str:
    literals = (f'R"~~~~({text[i:i + PIECE]})~~~~"' for i in range(0, len(text), PIECE))
    return ",\n".join(literals)


def main(output, header, namespace, *names):
    texts = {name: Path(name).read_text() for name in names}
    for name, text in texts.items():
        for end in ("</script", "</style", "<!--", ")~~~~"):
            if end in text:
                sys.exit(f"{name} contains {end}")
    lines = [f'#include "{header}"', "", f"namespace {namespace} {{", ""]
    for name, suffix in (("kStyle", ".css"), ("kScript", ".js")):
        parts = [text for path, text in texts.items() if path.endswith(suffix)]
        if parts:
            separator = "\n;" if suffix == ".js" else "\n"
            lines += [f"constexpr std::string_view {name}Pieces[] = {{",
                      f"{pieces(separator.join(parts))}}};",
                      f"const std::span<const std::string_view> {name} = {name}Pieces;", ""]
    Path(output).write_text("\n".join([*lines, f"}}  // namespace {namespace}", ""]))


main(*sys.argv[1:])
