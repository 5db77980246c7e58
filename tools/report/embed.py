#!/usr/bin/env python3
"""Makes page.cpp: embed.py OUTPUT STYLE SCRIPT...

The scripts become one, in their order. What stands in the page's <style> and <script> elements must
not end them.
"""

import sys
from pathlib import Path

PIECE = 8000  # bytes: compilers limit the length of a literal


def pieces(text: str) -> str:
    literals = (f'R"~~~~({text[i:i + PIECE]})~~~~"' for i in range(0, len(text), PIECE))
    return ",\n".join(literals)


def main(output, style, *scripts):
    texts = {name: Path(name).read_text() for name in (style, *scripts)}
    for name, text in texts.items():
        for end in ("</script", "</style", "<!--", ")~~~~"):
            if end in text:
                sys.exit(f"{name} contains {end}")
    script = "\n;".join(texts[name] for name in scripts)
    Path(output).write_text(
        '#include "tools/report/page.h"\n\nnamespace assay::report {\n\n'
        f"constexpr std::string_view kStylePieces[] = {{\n{pieces(texts[style])}}};\n"
        f"constexpr std::string_view kScriptPieces[] = {{\n{pieces(script)}}};\n"
        "const std::span<const std::string_view> kStyle = kStylePieces, kScript = kScriptPieces;\n\n"
        "}  // namespace assay::report\n")


main(*sys.argv[1:])
