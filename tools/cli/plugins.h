// `assay plugins`: which profilers there are, and what one has to offer.
#pragma once

#include <span>
#include <string>

namespace assay {

// `arguments` stand behind "plugins". Returns the exit status. Throws Error.
int plugins_main(std::span<const std::string> arguments);

}  // namespace assay
