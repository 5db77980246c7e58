// The only exception type of the collector and the tools: a message for the user on one line (what
// failed, where, the wrong value, the remedy), and an exit status. The driver does not use it,
// because it must not throw across translated code.
#pragma once

#include <stdexcept>
#include <string>

namespace assay {

// Exit statuses of assay's own failures. 126 and 127 have the same meaning in a shell.
inline constexpr int kExitFailure = 125;
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

class Error : public std::runtime_error {
  public:
    explicit Error(const std::string& message, int exit_status = kExitFailure)
        : std::runtime_error(message), exit_status_(exit_status) {}
    int exit_status() const { return exit_status_; }

  private:
    int exit_status_;
};

}  // namespace assay
