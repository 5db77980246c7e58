#include "tools/annotate/inclusive.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

namespace assay::annotate {

namespace {

// Limits what is kept of hostile files.
constexpr std::size_t kMostCallsKept = kMostBytes / sizeof(std::uint64_t[4]);

}  // namespace

InclusiveCounts::InclusiveCounts(std::vector<std::string> events,
                                 std::vector<Replacement> file_names,
                                 std::vector<Replacement> function_names)
    : events_(std::move(events)),
      file_names_(std::move(file_names)),
      function_names_(std::move(function_names)) {}

void InclusiveCounts::start(const events::Header& header) {
    add_contexts();
    sites_ = {{}};
    contexts_ = {{}};
    index_ = 0;
    for (auto name = events_.rbegin(); name != events_.rend(); ++name)
        for (std::size_t i = 0; i < header.events.size(); ++i)
            if (header.events[i].name == *name) index_ = i;
}

void InclusiveCounts::site(const events::Site& site) {
    if (sites_.size() == kMostCallsKept)
        throw Error(
            fmt::format("there are more than {} sites, which no program has", kMostCallsKept));
    sites_.push_back({site.parent, site.line, names_.id(replaced(site.file, file_names_)),
                      names_.id(replaced(site.function, function_names_))});
}

void InclusiveCounts::location(const events::Location& location) {
    file_ = names_.id(replaced(location.file, file_names_));
    function_ = names_.id(replaced(location.function, function_names_));
    rows_.clear();
    next_row_ = 0;
}

void InclusiveCounts::line(std::uint32_t, Counts counts) {
    own_[key(function_, file_)] += counts[index_];
    if (sites_.size() > 1) rows_.push_back(counts[index_]);
}

// The code of these lines was inlined at the site, whose callers may be inlined themselves.
void InclusiveCounts::line_sites(std::uint32_t site, std::uint64_t count) {
    std::uint64_t sum = 0;
    for (; count != 0 && next_row_ < rows_.size(); --count) sum += rows_[next_row_++];
    std::vector<std::uint64_t> lines;
    std::vector<Id> functions{function_};
    for (; site != 0 && sum != 0; site = sites_[site].parent) {
        const Site& call = sites_[site];
        const std::uint64_t line = key(call.file, call.line);
        if (call.line != 0 && std::find(lines.begin(), lines.end(), line) == lines.end()) {
            lines.push_back(line);
            lines_[line] += sum;
        }
        if (std::find(functions.begin(), functions.end(), call.caller) == functions.end()) {
            functions.push_back(call.caller);
            functions_[call.caller] += sum;
        }
    }
}

void InclusiveCounts::stack(const events::Stack& stack, Counts counts) {
    if (contexts_.size() == kMostCallsKept)
        throw Error(
            fmt::format("there are more than {} contexts, which no program has", kMostCallsKept));
    contexts_.push_back({stack.parent, stack.line,
                         names_.id(replaced(stack.function, function_names_)), counts[index_],
                         counts[index_]});
}

void InclusiveCounts::call(const Call& call, Counts counts) {
    if (call.line != 0) lines_[key(file_, call.line)] += counts[index_];
}

// Adds the contexts of a file. Parents precede their contexts.
void InclusiveCounts::add_contexts() {
    const auto size = static_cast<std::uint32_t>(contexts_.size());
    if (size < 2) return;
    std::vector<std::uint32_t> first_inner(size), next(size);
    for (std::uint32_t i = size; i-- > 1;) {
        Context& outer = contexts_[contexts_[i].parent];
        outer.inclusive += contexts_[i].inclusive;
        next[i] = std::exchange(first_inner[contexts_[i].parent], i);
    }
    const std::unordered_map<Id, Id> files = files_of_functions();
    // A line of a function without a file counts for nothing.
    const auto line_of = [&](const Context& context) -> std::optional<std::uint64_t> {
        if (context.parent == 0 || context.line == 0) return std::nullopt;
        const auto file = files.find(contexts_[context.parent].function);
        if (file == files.end()) return std::nullopt;
        return key(file->second, context.line);
    };
    // A function or a line that is on the way to a context already includes it.
    std::unordered_set<std::uint64_t> open_functions, open_lines;
    struct Step {
        std::uint32_t context;
        bool opened_function, opened_line;
    };
    std::vector<Step> way{{0, false, false}};
    for (std::uint32_t at = first_inner[0]; way.size() > 1 || at != 0;) {
        if (at == 0) {
            const Step step = way.back();
            way.pop_back();
            const Context& context = contexts_[step.context];
            if (step.opened_function) open_functions.erase(context.function);
            if (step.opened_line) open_lines.erase(*line_of(context));
            at = next[step.context];
            continue;
        }
        const Context& context = contexts_[at];
        const std::optional<std::uint64_t> line = line_of(context);
        const Step step{at, open_functions.insert(context.function).second,
                        line && open_lines.insert(*line).second};
        if (step.opened_function) by_context_functions_[context.function] += context.inclusive;
        if (step.opened_line) by_context_lines_[*line] += context.inclusive;
        way.push_back(step);
        at = first_inner[at];
    }
    contexts_.clear();
}

std::unordered_map<InclusiveCounts::Id, InclusiveCounts::Id> InclusiveCounts::files_of_functions()
    const {
    std::unordered_map<Id, Id> files;
    for (const auto& [place, count] : own_) {
        const auto function = static_cast<Id>(place >> 32), file = static_cast<Id>(place);
        const auto [known, is_new] = files.try_emplace(function, file);
        const std::uint64_t most = own_.at(key(function, known->second));
        if (count > most || (count == most && file < known->second)) known->second = file;
    }
    return files;
}

void InclusiveCounts::finish() {
    add_contexts();
    // Not all events are counted by context.
    if (std::all_of(by_context_functions_.begin(), by_context_functions_.end(),
                    [](const auto& entry) { return entry.second == 0; }))
        return;
    lines_ = std::move(by_context_lines_);
    functions_.clear();
    std::unordered_map<Id, std::uint64_t> own;
    for (const auto& [place, count] : own_) own[static_cast<Id>(place >> 32)] += count;
    for (const auto& [function, count] : by_context_functions_)
        functions_[function] = count - std::min(count, own[static_cast<Id>(function)]);
}

std::uint64_t InclusiveCounts::of_line(std::string_view file, std::uint32_t line,
                                       std::uint64_t own) const {
    const std::optional<Id> id = names_.find(file);
    const auto found = id ? lines_.find(key(*id, line)) : lines_.end();
    return own + (found == lines_.end() ? 0 : found->second);
}

std::uint64_t InclusiveCounts::of_function(std::string_view name, std::uint64_t own) const {
    const std::optional<Id> id = names_.find(name);
    const auto found = id ? functions_.find(*id) : functions_.end();
    return own + (found == functions_.end() ? 0 : found->second);
}

}  // namespace assay::annotate
