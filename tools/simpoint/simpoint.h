// assay simpoint: finds the phases of a program in its block vectors, and for each phase an
// interval that represents it.
#pragma once

#include "tools/command_line/command_line.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay::simpoint {

// Shows the phases of a program over time as a line on a terminal.

// The letter of a phase: A to Z, then a to z, then ?.
char letter(std::uint32_t phase);

// At most `width` cells. The numbers of intervals in cells differ by at most one. A cell shows the
// phase that most of its intervals have, the earliest of equals. With colour, cells are blocks in
// the colours of their phases, otherwise letters.
std::string strip(std::span<const std::uint32_t> phases, std::size_t width, bool color);

std::string in_color(std::uint32_t phase, const std::string& text);

}  // namespace assay::simpoint

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int simpoint_main(int argc, char** argv);

namespace simpoint {

std::vector<Option> options();

}  // namespace simpoint

}  // namespace assay
