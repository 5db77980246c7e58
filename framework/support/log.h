// assay's own words to the user: lines on stderr that begin with "assay: ". What they quote from
// files and command lines is made printable.
//
// Also the line on a terminal that says how far the work is.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace assay::log {

// Leaves out remarks.
void set_quiet(bool quiet);
bool quiet();

// The processes that fork(2) makes of this one from now on, and this one, say the same line only
// once, whoever is first: hundreds of them may have the same to say.
void say_once_among_processes();

// From now on this process says nothing: `receiver` is told what it would say.
void send_to(std::function<void(bool problem, std::string_view text)> receiver);

// Called before each line on stderr, which may have something to make way there; empty: nothing is.
void call_before_line(std::function<void()> wanted);

// Something that the user may want to know.
void remark(std::string_view text);
// Something that the user must know, also with --quiet: an error or a loss.
void problem(std::string_view text);

}  // namespace assay::log

namespace assay {

// A line on the terminal of standard error that says how far something is. Each text replaces the
// one before; the line is erased before log:: writes another line, and at the end.

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
