// assay's messages to the user: lines on stderr that begin with "assay: ". Quotes from files and
// command lines are made printable. Also the progress line on a terminal.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace assay::log {

// Suppresses remarks.
void set_quiet(bool quiet);
bool quiet();

// From now on, this process and the processes that fork(2) makes of it write equal lines only once
// in total. Hundreds of processes may have the same message.
void say_once_among_processes();

// From now on, this process writes no message but passes it to `receiver`.
void send_to(std::function<void(bool problem, std::string_view text)> receiver);

// Sets a function that is called before each line on stderr, to clear the way for it. An empty
// function is not called.
void call_before_line(std::function<void()> wanted);

// Writes something that the user may want to know.
void remark(std::string_view text);
// Writes something that the user must know even with --quiet: an error or a loss.
void problem(std::string_view text);

}  // namespace assay::log

namespace assay {

// A progress line on the terminal of standard error. Each text replaces the one before. The line is
// erased before log:: writes another line, and in the destructor.
class StatusLine {
  public:
    // Shows nothing if `wanted` is false.
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
