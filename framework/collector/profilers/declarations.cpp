#include "framework/collector/profilers/declarations.h"

#include "framework/events/formula.h"
#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <cctype>

namespace assay::collector {
namespace {

bool is_name(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '_' || c == '-';
    });
}

// Names in the events file begin with a letter.
bool is_column_name(std::string_view text) {
    return is_name(text) && std::isalpha(static_cast<unsigned char>(text[0]));
}

// Reads a table of the profiler through a function that stores a length and returns an array.
template <typename Row, typename Get, typename Take>
void read_table(Get get, const Take& take) {
    if (!get) return;
    std::uint32_t count = 0;
    const Row* rows = get(&count);
    for (std::uint32_t i = 0; rows && i < count; ++i) take(rows[i]);
}

void check_lengths(const ProfilerFacts& facts) {
    const auto check = [](const std::string& text, std::size_t most, const std::string& what) {
        if (text.size() > most)
            throw Error(fmt::format("{} has {} bytes, more than {}", what, text.size(), most));
    };
    const auto name = [&](const std::string& text, const std::string& of) {
        check(text, kLongestName, fmt::format("the name of {}", of));
    };
    const auto say = [&](const std::string& text, const char* what, const std::string& of) {
        check(text, kLongestText, fmt::format("the {} of {}", what, of));
    };
    check(facts.name, kLongestName, "its name");
    check(facts.description, kLongestText, "its description");
    for (std::size_t i = 0; i < facts.events.size(); ++i) {
        name(facts.events[i].name, fmt::format("its event {}", i));
        say(facts.events[i].description, "description", "its event " + facts.events[i].name);
        say(facts.events[i].unit, "unit", "its event " + facts.events[i].name);
    }
    for (std::size_t i = 0; i < facts.derived.size(); ++i) {
        name(facts.derived[i].name, fmt::format("its figure {}", i));
        say(facts.derived[i].formula, "formula", "its figure " + facts.derived[i].name);
        say(facts.derived[i].unit, "unit", "its figure " + facts.derived[i].name);
    }
    for (std::size_t i = 0; i < facts.value_lists.size(); ++i)
        name(facts.value_lists[i], fmt::format("its list of values {}", i));
    for (std::size_t i = 0; i < facts.options.size(); ++i) {
        name(facts.options[i].name, fmt::format("its option {}", i));
        say(facts.options[i].argument, "argument", "its option " + facts.options[i].name);
        say(facts.options[i].help, "help", "its option " + facts.options[i].name);
        say(facts.options[i].default_value.value_or(""), "default",
            "its option " + facts.options[i].name);
    }
}

void check_names(const ProfilerFacts& facts) {
    constexpr const char* kRule = "use letters, digits, _ and -, a letter first";
    if (!is_column_name(facts.name))
        throw Error(fmt::format("its name is \"{}\": {}", facts.name, kRule));
    std::vector<events::Event> columns;
    for (const ProfilerEvent& event : facts.events) {
        if (!is_column_name(event.name))
            throw Error(fmt::format("it declares an event named \"{}\": {}", event.name, kRule));
        for (const events::Event& before : columns)
            if (before.name == event.name)
                throw Error(fmt::format("it declares the event {} twice", event.name));
        columns.push_back({event.name, {}, {}, {}});
    }
    for (const ProfilerDerived& figure : facts.derived) {
        try {
            events::Formula(figure.formula, columns);
        } catch (const Error& e) {
            throw Error(fmt::format("its figure \"{}\": {}", figure.name, e.what()));
        }
    }
    if (facts.value_lists.size() > VP_VALUE_LISTS_MAX)
        throw Error(fmt::format("it declares {} lists of values, more than {}",
                                facts.value_lists.size(), unsigned{VP_VALUE_LISTS_MAX}));
    for (const std::string& list : facts.value_lists)
        if (facts.value_lists.size() > 1 || !list.empty())
            if (!is_name(list))
                throw Error(
                    fmt::format("its list of values \"{}\": use letters, digits, _ and -", list));
    for (const ProfilerOption& option : facts.options)
        if (!is_name(option.name) || option.type > VP_OPTION_ASSIGNMENT)
            throw Error(
                fmt::format("its option \"{}\" has no legal name, or a type ({}) that this assay "
                            "does not know",
                            option.name, static_cast<unsigned>(option.type)));
}

}  // namespace

void read_events(const vp_dispatch_t& table, ProfilerFacts& facts) {
    read_table<vp_event_t>(table.vp_events, [&](const vp_event_t& row) {
        facts.events.push_back(
            {text_or_empty(row.name), text_or_empty(row.description), text_or_empty(row.unit)});
    });
}

void read_value_lists(const vp_dispatch_t& table, ProfilerFacts& facts) {
    std::uint32_t count = 0;
    const char* const* names = table.vp_value_lists ? table.vp_value_lists(&count) : nullptr;
    for (std::uint32_t i = 0; names && i < count; ++i)
        facts.value_lists.push_back(text_or_empty(names[i]));
    if (facts.value_lists.empty()) facts.value_lists.emplace_back();
}

void read_derived(const vp_dispatch_t& table, ProfilerFacts& facts) {
    read_table<vp_derived_t>(table.vp_derived, [&](const vp_derived_t& row) {
        facts.derived.push_back(
            {text_or_empty(row.name), text_or_empty(row.formula), text_or_empty(row.unit)});
    });
}

void read_options(const vp_dispatch_t& table, ProfilerFacts& facts) {
    read_table<vp_option_t>(table.vp_option_table, [&](const vp_option_t& row) {
        std::optional<std::string> default_value;
        if (row.default_value) default_value = row.default_value;
        facts.options.push_back({text_or_empty(row.name), text_or_empty(row.argument),
                                 text_or_empty(row.help), std::move(default_value),
                                 static_cast<vp_option_type>(row.type)});
    });
}

void check_declarations(const ProfilerFacts& facts) {
    check_lengths(facts);
    check_names(facts);
}

}  // namespace assay::collector
