// The profile that is meant where none is named.
#pragma once

#include <string>

namespace assay {

// The events file of the working directory that was written last, or the index of a run if that
// was; which is told to the user. Throws Error if there is none.
std::string newest_profile();

}  // namespace assay
