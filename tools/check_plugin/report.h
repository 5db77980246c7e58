// What the checks of a profiler tell the process that waits for them.
#pragma once

#include <cstddef>
#include <string_view>

namespace assay::check {

// Where checks write to; another process reads it. What is being called stands in memory that both
// share. To the descriptor, a line each:
//     !FUNCTION TEXT  breaks a rule
//     ?FUNCTION TEXT  could be better
//     =NAME TYPE      an option that the profiler has
//     -FUNCTION TEXT  refuses to start, and why; nothing else can be checked
//     ~TEXT           why the trace says nothing about it
//     .               the checks came to their end
class Report {
  public:
    static constexpr std::size_t kRoom = 128;
    Report(int descriptor, char (&current_call)[kRoom])
        : descriptor_(descriptor), current_call_(current_call) {}

    void calling(std::string_view function) {
        current_call_[function.copy(current_call_, kRoom - 1)] = '\0';
    }
    void broken(std::string_view function, std::string_view text) { write('!', function, text); }
    void advice(std::string_view function, std::string_view text) { write('?', function, text); }
    void refused(std::string_view function, std::string_view why) { write('-', function, why); }
    void impossible(std::string_view why) { write('~', "", why); }
    void option(std::string_view name, unsigned type);
    void finished() { write('.', "", ""); }

  private:
    void write(char kind, std::string_view function, std::string_view text);

    int descriptor_;
    char (&current_call_)[kRoom];
};

}  // namespace assay::check
