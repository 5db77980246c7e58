#!/usr/bin/env python3
"""Makes page.cpp: embed.py OUTPUT STYLE SCRIPT...

The scripts become one, in their order. What stands in the page's <style> and <script> elements must
not end them.
"""

import sys
from pathlib import Path

PIECE = 8000  # compilers limit the length of a literal


def literal(text: str) -> str:
    pieces = [text[i:i + PIECE] for i in range(0, len(text), PIECE)]
    return "\n".join(f'R"~~~~({piece})~~~~"' for piece in pieces)


def main(output, style, *scripts):
    texts = {name: Path(name).read_text() for name in (style, *scripts)}
    for name, text in texts.items():
        for end in ("</script", "</style", "<!--", ")~~~~"):
            if end in text:
                sys.exit(f"{name} contains {end}")
    script = "\n;".join(texts[name] for name in scripts)
    Path(output).write_text(
        '#include "tools/report/page.h"\n\nnamespace assay::report {\n\n'
        f"constexpr std::string_view kStyleText =\n{literal(texts[style])};\n"
        f"constexpr std::string_view kScriptText =\n{literal(script)};\n"
        "const std::string_view kStyle = kStyleText, kScript = kScriptText;\n\n"
        "}  // namespace assay::report\n")


main(*sys.argv[1:])
