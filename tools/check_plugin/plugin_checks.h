// What a profiler must keep to, checked in a process of its own. See assay/vprofiler.h and
// docs/abi.md for the rules.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace assay::check {

// Where checks write to; another process reads it. What is being called stands in memory that both
// share. To the descriptor, a line each:
//     !FUNCTION TEXT  breaks a rule
//     ?FUNCTION TEXT  could be better
//     =NAME TYPE      an option that the profiler has
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
    void option(std::string_view name, unsigned type);
    void finished() { write('.', "", ""); }

  private:
    void write(char kind, std::string_view function, std::string_view text);

    int descriptor_;
    char (&current_call_)[kRoom];
};

struct Check {
    std::string_view situation;  // for messages about crashes: "in ..."
    void (*run)(const std::string& path, Report& report);
};
std::span<const Check> checks();

// A run with one option set.
void check_option(const std::string& path, const std::string& name, const std::string& value,
                  Report& report);
// Values to try.
std::span<const std::string_view> values_of_type(unsigned type);

}  // namespace assay::check
