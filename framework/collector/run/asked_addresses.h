// Addresses that a collector had to find source positions for, as a message to the supervisor,
// which finds them again for the collectors to come: most programs run the same code of the same
// libraries.
#pragma once

#include "framework/symbols/symbolizer.h"

#include <cstddef>
#include <functional>
#include <string_view>

namespace assay::collector {

// In messages of at most `most` bytes.
void for_each_message(const symbols::Request& asked, std::size_t most,
                      const std::function<void(std::string_view)>& send);
symbols::Request request_from(std::string_view message);

}  // namespace assay::collector
