#include "tools/sweep/options.h"

#include "assay/trace_file.h"
#include "framework/events/file.h"
#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <charconv>
#include <optional>

namespace assay::sweep {
namespace {

struct Arguments {
    Options options;
    unsigned status = 0;
};

constexpr const char* kPurpose =
    "Runs a program once for every combination of the values that are given for options\n"
    "of profilers, and prints the totals of all runs as one table. The folder keeps the\n"
    "finished runs: the same command continues a sweep that was interrupted.\n\n"
    "  assay sweep --plugin=NAME [--OPTION=VALUES...] [options] [--] PROGRAM [ARG...]\n"
    "  assay sweep --plugin=NAME [--OPTION=VALUES...] [options] TRACE...\n";

constexpr const char* kExamples =
    "All options of assay run and of the profilers may be given. Values of a profiler's:\n\n"
    "    --predictor=gshare,tage           two values\n"
    "    --predictor-bits=10..14+1         10, 11, 12, 13, 14\n"
    "    --D1='16K,8,64 32K,8,64'          values with commas: separate them by blanks\n"
    "    --D1=16K,8,64 --D1=32K,8,64       the same\n"
    "    --D1=16K,8,64..128K,8,64          the size doubles: 16K, 32K, 64K, 128K\n\n"
    "Examples:\n\n"
    "  assay sweep --plugin=cache --D1=16K,8,64..128K,8,64 -o sizes -- ./program\n"
    "  assay sweep --plugin=cache --machine=zen2,zen4,mine.yaml -- ./program input\n"
    "  assay sweep --plugin=cache --machine=zen4 --set=L2.size=256K..2M \\\n"
    "      --set=L2.replacement=lru,srrip,drrip a.trace b.trace\n\n"
    "Exit status: 0, or 1 if a point has failed, or 125 if something could not be\n"
    "understood, read or written, or 126 or 127 if the program cannot be run.\n";

void add_options(CommandLine& line, Arguments& arguments) {
    Options& options = arguments.options;
    line.describe("assay sweep", kPurpose, kExamples);
    line.add_text("-o,--out", options.folder, "DIR",
                  "write the events files and logs of all points to this folder; default: "
                  "assay.sweep");
    line.add_number("-j,--jobs", options.jobs, 1, 4096, "N",
                    "run N points at once; default: for a program the number of processors, for a "
                    "trace 32");
    line.add_choice("--format", options.format, "text|csv|json",
                    "print the table in this format; default: text");
    line.add_list("--show", options.show, "A,B,...",
                  "print only these events and figures, in this order");
    line.add_number("--status", arguments.status, 0, 255, "N",
                    "expect exit status N from the program; with any other status, the point has "
                    "failed; default: 0");
    line.add_flag("--slurm", options.slurm,
                  "run the points as a job array of Slurm, whose nodes must see the folder, the "
                  "program and assay under the same names");
    line.add_list("--sbatch", options.sbatch, "OPTION",
                  "with --slurm, pass an option to sbatch(1): --sbatch=--time=30; may be repeated");
    line.add_number("--retries", options.retries, 0, 100, "N",
                    "with --slurm, submit a point up to N times again if it has failed or its task "
                    "has disappeared; default: 2");
    line.add_number("--point", options.point, 1, 100'000, "N",
                    "run only point N of the sweep in the folder of -o, as a task of the job "
                    "array does");
    line.add_flag("-q,--quiet", options.quiet, "print errors only");
    line.needs("sbatch", "slurm");
}

bool is_trace(const std::string& path) {
    constexpr std::string_view kBeginning = TRACE_FILE_MAGIC;
    try {
        return events::can_be_read_again(path) &&
               events::beginning_of_file(path, kBeginning.size()) == kBeginning;
    } catch (const Error&) {
        return false;  // a program, or a missing file
    }
}

// Adds the options of runs and profilers that sweep does not define itself.
void add_options_of_runs(CommandLine& line, Options& options) {
    const auto take = [&options](const Setting& setting) { options.settings.push_back(setting); };
    for (const Option& option : collector::options_of(collector::kRun))
        if (!line.find(option.name()))
            line.add(join(option.names, ",").c_str(), option.argument.c_str(), "", take);
    line.take_others(take);
}

// Takes the swept options and the program. `words` are all words of the command line.
void take_runs(const std::vector<std::string>& words, Options& options) {
    for (const Setting& setting : options.settings) options.words.push_back(written(setting));
    if (options.program.empty())
        throw Error(
            "no program to run: assay sweep --plugin=NAME [--OPTION=VALUES...] [--] PROGRAM "
            "[ARG...]");
    const std::size_t before = words.size() - options.program.size() - 1;
    const bool behind_dashes = before < words.size() && words[before] == "--";
    options.is_trace = !behind_dashes && is_trace(options.program.front());
    for (const std::string& word : options.program)
        if (options.is_trace && !is_trace(word))
            throw Error(
                fmt::format("{} is a trace, which takes no arguments, and {} is none; if the first "
                            "is a program, put -- before it",
                            options.program[0], word));
    if (!options.is_trace) options.words.emplace_back("--");
    options.words.insert(options.words.end(), options.program.begin(), options.program.end());
}

}  // namespace

std::vector<Option> options() {
    return options_of(add_options);
}

std::string written(const Setting& setting) {
    const Option* const core = collector::find_option(setting.name);
    return core && core->argument.empty() ? "--" + setting.name
                                          : fmt::format("--{}={}", setting.name, setting.value);
}

std::optional<Options> parse_options(int argc, const char* const* argv) {
    Arguments parsed;
    Options& options = parsed.options;
    CommandLine line;
    add_options(line, parsed);
    add_help(line);
    add_options_of_runs(line, options);
    line.add_program(options.program);
    if (!parse(line, argc, argv, Order::kOptionsFirst)) return std::nullopt;
    options.accepted_status = static_cast<int>(parsed.status);
    if (options.folder.empty()) options.folder = "assay.sweep";
    if (options.point != 0) {
        if (!options.settings.empty() || !options.program.empty())
            throw Error(fmt::format(
                "--point: the folder contains the program and its options; leave out {}",
                options.settings.empty() ? options.program[0] : written(options.settings[0])));
        return options;
    }
    take_runs({argv + 1, argv + argc}, options);
    return std::move(options);
}

namespace {

constexpr std::string_view kRange = "..";

// The factor of a K, M or G after a number; 1 for no unit, 0 for any other text.
std::uint64_t factor_of(std::string_view unit, std::uint64_t kilo) {
    if (unit.empty()) return 1;
    if (unit == "k" || unit == "K") return kilo;
    if (unit == "M") return kilo * kilo;
    if (unit == "G") return kilo * kilo * kilo;
    return 0;
}

struct Number {
    std::uint64_t value = 0;
    bool has_unit = false;
};

std::optional<Number> parse_number(std::string_view text, std::uint64_t kilo) {
    Number number;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number.value);
    const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
    const std::uint64_t factor = factor_of(unit, kilo);
    if (error != std::errc() || factor == 0 || number.value > UINT64_MAX / factor)
        return std::nullopt;
    number.value *= factor;
    number.has_unit = !unit.empty();
    return number;
}

// Uses the largest unit that gives a whole number.
std::string number_text(std::uint64_t value, bool with_unit, std::uint64_t kilo) {
    constexpr std::string_view kUnits = "KMG";
    if (!with_unit || value == 0) return std::to_string(value);
    std::size_t units = 0;
    while (units < kUnits.size() && value % kilo == 0) {
        value /= kilo;
        ++units;
    }
    std::string text = std::to_string(value);
    if (units > 0) text += units == 1 && kilo == 1000 ? 'k' : kUnits[units - 1];
    return text;
}

// --- Lists

// Separators are commas and semicolons, or blanks and semicolons if values contain commas. A
// separator after a backslash belongs to the value.
std::vector<std::string> items_of(const ValueForm& form, std::string_view text) {
    const std::string_view separators = form.has_commas() ? "; \t" : ";,";
    std::vector<std::string> items(1);
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 1 < text.size() &&
            separators.find(text[i + 1]) != std::string_view::npos)
            items.back() += text[++i];
        else if (separators.find(text[i]) == std::string_view::npos)
            items.back() += text[i];
        else
            items.emplace_back();
    }
    // Blanks around a semicolon do not separate empty values.
    if (form.has_commas()) std::erase(items, "");
    if (items.empty() || std::find(items.begin(), items.end(), "") != items.end())
        throw Error(fmt::format("{}={}: a value is empty; give {}", form.option, text,
                                form.has_commas() ? "values separated by blanks or semicolons"
                                                  : "values separated by commas"));
    return items;
}

// --- Ranges

// True for a range of numbers such as 16K,8,64..128K,8,64. False for a path such as ../machine.
bool is_range(std::string_view item) {
    const std::size_t dots = item.find(kRange);
    if (dots == std::string_view::npos || dots == 0) return false;
    const std::string_view from = item.substr(0, dots);
    return from.find_first_not_of("0123456789kKMG,") == std::string_view::npos &&
           from.front() >= '0' && from.front() <= '9';
}

class Range {
  public:
    Range(const ValueForm& form, std::string_view item) : form_(form), item_(item) {
        const std::size_t dots = item.find(kRange);
        std::string_view to = item.substr(dots + kRange.size());
        if (const std::size_t plus = to.find('+'); plus != std::string_view::npos) {
            const std::optional<Number> step = parse_number(to.substr(plus + 1), form.kilo);
            if (!step || step->value == 0)
                fail(fmt::format("\"{}\" is not a number to add", to.substr(plus + 1)));
            step_ = step->value;
            to = to.substr(0, plus);
        }
        from_texts_ = split(item.substr(0, dots), ',');
        from_ = numbers(from_texts_);
        to_ = numbers(split(to, ','));
        if (from_.size() != to_.size()) fail("both ends must have as many numbers");
        for (std::size_t i = 0; i < from_.size(); ++i)
            if (from_[i].value != to_[i].value) varying_.push_back(i);
        if (varying_.empty()) fail("both ends are the same");
    }

    std::vector<std::string> values() const {
        const std::size_t steps = step_ == 0 ? doublings() : additions();
        std::vector<std::string> values;
        for (std::size_t step = 0; step <= steps; ++step) values.push_back(value(step));
        return values;
    }

  private:
    [[noreturn]] void fail(std::string_view why) const {
        throw Error(fmt::format(
            "{}: {}: {}; write FROM..TO, whose numbers double from one value to the next, "
            "FROM..TO+STEP, or a list of all values",
            form_.option, item_, why));
    }

    std::vector<Number> numbers(const std::vector<std::string>& texts) const {
        std::vector<Number> numbers;
        for (const std::string& text : texts) {
            const std::optional<Number> number = parse_number(text, form_.kilo);
            if (!number) fail(fmt::format("\"{}\" is not a number", text));
            numbers.push_back(*number);
        }
        return numbers;
    }

    // The number of doublings, which must be the same for all fields that vary.
    std::size_t doublings() const {
        std::optional<std::size_t> steps;
        for (const std::size_t i : varying_) {
            std::size_t own = 0;
            std::uint64_t value = from_[i].value;
            while (value != 0 && value < to_[i].value && value <= UINT64_MAX / 2) {
                value *= 2;
                ++own;
            }
            if (value != to_[i].value)
                fail(
                    fmt::format("{} does not become {} by doubling", text(from_, i), text(to_, i)));
            if (steps && *steps != own)
                fail(fmt::format(
                    "{} becomes {} in a different number of steps than the field before",
                    text(from_, i), text(to_, i)));
            steps = own;
        }
        return *steps;
    }

    std::size_t additions() const {
        if (varying_.size() != 1) fail("with a step, only one number can vary");
        const std::uint64_t from = from_[varying_[0]].value, to = to_[varying_[0]].value;
        if (from > to) fail("the second end is below the first");
        if ((to - from) % step_ != 0)
            fail(fmt::format("steps of {} do not lead from {} to {}", step_,
                             text(from_, varying_[0]), text(to_, varying_[0])));
        if ((to - from) / step_ >= kMostValues)
            fail(fmt::format("that is more than {} values", kMostValues));
        return static_cast<std::size_t>((to - from) / step_);
    }

    std::string text(const std::vector<Number>& end, std::size_t i) const {
        return number_text(end[i].value, end[i].has_unit, form_.kilo);
    }

    std::string value(std::size_t step) const {
        std::vector<std::string> fields = from_texts_;
        for (const std::size_t i : varying_) {
            const std::uint64_t number =
                step_ == 0 ? from_[i].value << step : from_[i].value + step * step_;
            fields[i] = number_text(number, from_[i].has_unit || to_[i].has_unit, form_.kilo);
        }
        return join(fields, ",");
    }

    const ValueForm& form_;
    const std::string item_;
    std::uint64_t step_ = 0;  // 0: values double
    std::vector<std::string> from_texts_;
    std::vector<Number> from_, to_;
    std::vector<std::size_t> varying_;  // indices of fields
};

}  // namespace

std::vector<std::string> listed_values(const ValueForm& form, std::span<const std::string> given) {
    std::vector<std::string> values;
    for (const std::string& text : given) {
        for (const std::string& item : items_of(form, text)) {
            const std::vector<std::string> added =
                is_range(item) ? Range(form, item).values() : std::vector{item};
            for (const std::string& value : added)
                if (std::find(values.begin(), values.end(), value) == values.end())
                    values.push_back(value);
            if (values.size() > kMostValues)
                throw Error(fmt::format("{}: more than {} values", form.option, kMostValues));
        }
    }
    return values;
}

std::vector<std::uint64_t> sizes_of(const ValueForm& form, std::span<const std::string> values) {
    std::vector<std::vector<std::string>> fields;
    for (const std::string& value : values) fields.push_back(split(value, ','));
    const auto same_size = [&](const auto& each) { return each.size() == fields.front().size(); };
    if (fields.empty() || !std::all_of(fields.begin(), fields.end(), same_size)) return {};
    for (std::size_t i = 0; i < fields.front().size(); ++i) {
        const auto is_first = [&](const auto& each) { return each[i] == fields.front()[i]; };
        if (fields.size() > 1 && std::all_of(fields.begin(), fields.end(), is_first)) continue;
        std::vector<std::uint64_t> sizes;
        for (const auto& each : fields) {
            const std::optional<Number> number = parse_number(each[i], form.kilo);
            if (!number || number->value == 0) return {};
            sizes.push_back(number->value);
        }
        return sizes;
    }
    return {};
}

}  // namespace assay::sweep
