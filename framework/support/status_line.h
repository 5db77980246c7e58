// A line on the terminal of standard error that says how far something is. Each text replaces the
// one before; the line is erased before log:: writes another line, and at the end.
#pragma once

#include <string>

namespace assay {

class StatusLine {
  public:
    // Shows nothing unless `wanted`.
    explicit StatusLine(bool wanted);
    ~StatusLine();
    StatusLine(const StatusLine&) = delete;
    StatusLine& operator=(const StatusLine&) = delete;

    // Cuts the text to the width of the terminal. Shows nothing while another job has the terminal.
    void show(std::string text);

  private:
    void erase();

    const bool wanted_;
    bool shown_ = false;
};

}  // namespace assay
