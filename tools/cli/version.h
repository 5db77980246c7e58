// `assay --version`.
#pragma once

#include <string>

namespace assay {

// The version and what a bug report needs: the processor and the features of it that programs are
// shown, the kernel, and the libraries. `driver` is "" for the installed driver; `hidden` is
// --hide.
std::string version_report(const std::string& driver, const std::string& hidden);

}  // namespace assay
