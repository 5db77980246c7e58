// `assay completion`: scripts by which shells complete assay's commands and options.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// argv[0] is the command's name. Throws Error.
int completion_main(int argc, char** argv);

// For bash, zsh or fish; throws Error for another shell.
std::string completion_script(std::string_view shell);

}  // namespace assay
