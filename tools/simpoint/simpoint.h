// assay simpoint: finds the phases of a program in its block vectors, and an interval that stands
// for each.
#pragma once

#include "tools/command_line/command_line.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay::simpoint {

// The phases of a program in the order of time, as a line of a terminal.

// How a phase is called: A to Z, then a to z, then ?.
char letter(std::uint32_t phase);

// At most `width` cells, each for as many intervals as the others, give or take one; a cell has the
// phase that most of its intervals have, the earliest of equals. With colour, blocks in a colour
// for each phase, else letters.
std::string strip(std::span<const std::uint32_t> phases, std::size_t width, bool color);

// `text` in the phase's colour.
std::string in_color(std::uint32_t phase, const std::string& text);

}  // namespace assay::simpoint

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int simpoint_main(int argc, char** argv);

namespace simpoint {

std::vector<Option> options();

}  // namespace simpoint

}  // namespace assay
