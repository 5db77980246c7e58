// `assay --version`.
#pragma once

#include <string>

namespace assay {

// The version with what a bug report has to tell: the processor and what of it programs are shown,
// the kernel, and the libraries. `driver` is "" for the one that was installed; `hidden` is --hide.
std::string version_report(const std::string& driver, const std::string& hidden);

}  // namespace assay
