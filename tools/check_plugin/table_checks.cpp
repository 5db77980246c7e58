#include "tools/check_plugin/plugin_checks.h"

#include "framework/events/header.h"
#include "tools/check_plugin/subject.h"

#include <fmt/core.h>
#include <charconv>
#include <set>
#include <string_view>
#include <vector>

namespace assay::check {
namespace {

const char* text_or_empty(const char* text) {
    return text ? text : "";
}

bool fits(const std::string& value, std::uint32_t type) {
    if (type == VP_OPTION_YES_NO || type == VP_OPTION_PROFILER)
        return value == "yes" || value == "no";
    if (type != VP_OPTION_UNSIGNED && type != VP_OPTION_COUNT) return true;
    std::uint64_t number = 0;
    const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    return error == std::errc() && rest == value.data() + value.size();
}

// All texts of all tables, to find out whether later calls change them.
std::vector<std::string> texts(Subject& subject) {
    std::vector<std::string> all;
    const auto add = [&](const char* text) { all.emplace_back(text ? text : "(null)"); };
    subject.call("vp_name", [&] { add(subject.table().vp_name()); });
    if (subject.table().vp_description)
        subject.call("vp_description", [&] { add(subject.table().vp_description()); });
    for (const vp_event_t& row : subject.events()) {
        add(row.name);
        add(row.description);
        add(row.unit);
    }
    for (const vp_derived_t& row : subject.derived()) {
        add(row.name);
        add(row.formula);
        add(row.unit);
    }
    for (const vp_option_t& row : subject.option_table()) {
        add(row.name);
        add(row.help);
    }
    for (const char* list : subject.value_lists()) add(list);
    return all;
}

void check_description(Subject& subject) {
    if (!subject.table().vp_description)
        return subject.report().advice("vp_description", "is missing: assay plugins shows it");
    subject.call("vp_description",
                 [&] { subject.check_text("vp_description", subject.table().vp_description()); });
}

void check_events(Subject& subject) {
    const std::vector<vp_event_t> events = subject.events();
    if (events.size() > events::kMaxEvents)
        subject.report().broken(
            "vp_events",
            fmt::format("declares {} events: a file holds at most {}, of all profilers of a run",
                        events.size(), events::kMaxEvents));
    for (const vp_event_t& event : events) {
        subject.check_text("vp_events", text_or_empty(event.description));
        subject.check_text("vp_events", text_or_empty(event.unit));
        if (!event.description || !*event.description)
            subject.report().advice("vp_events",
                                    fmt::format("has no description of {}: it is the legend of "
                                                "every table",
                                                event.name ? event.name : "?"));
    }
}

void check_derived(Subject& subject) {
    std::set<std::string> names;
    for (const vp_derived_t& figure : subject.derived()) {
        const std::string name = text_or_empty(figure.name);
        if (name.empty())
            subject.report().broken(
                "vp_derived", "has a figure without a name: tools print it before the number");
        else if (!names.insert(name).second)
            subject.report().broken(
                "vp_derived",
                fmt::format("has the figure {} twice: figures have one name each", name));
        subject.check_text("vp_derived", name.c_str());
        subject.check_text("vp_derived", text_or_empty(figure.unit));
    }
}

void check_value_lists(Subject& subject) {
    std::set<std::string> names;
    for (const char* list : subject.value_lists())
        if (list && !names.insert(list).second)
            subject.report().broken(
                "vp_value_lists",
                fmt::format("has the list {} twice: lists have one name each", list));
}

void check_option(Subject& subject, const vp_option_t& option) {
    constexpr const char* kTable = "vp_option_table";
    const std::string name = text_or_empty(option.name);
    if (name.starts_with('-'))
        subject.report().broken(
            kTable, fmt::format("has the option {}: leave its dashes out, assay adds them", name));
    if (option.default_value && !fits(option.default_value, option.type))
        subject.report().broken(kTable, fmt::format("has \"{}\" as the default of {}, which is not "
                                                    "a value of its type: correct one of them",
                                                    option.default_value, name));
    if (option.reserved != 0)
        subject.report().broken(
            kTable, fmt::format("`reserved` of {} is {}: set it to 0, because it may get a meaning",
                                name, option.reserved));
    if (!option.help || !*option.help)
        subject.report().advice(kTable, fmt::format("has no help for {}: say what it does", name));
    for (const char* text : {option.argument, option.default_value, option.help})
        subject.check_text(kTable, text_or_empty(text));
}

void check_option_table(Subject& subject) {
    std::set<std::string> names;
    for (const vp_option_t& option : subject.option_table()) {
        const std::string name = text_or_empty(option.name);
        if (!names.insert(name).second)
            subject.report().broken(
                "vp_option_table",
                fmt::format("has the option {} twice: options have one name each", name));
        check_option(subject, option);
        subject.report().option(name, option.type);
    }
}

}  // namespace

void check_tables(const std::string& path, Report& report) {
    Subject subject(path, report);
    if (!subject.init()) return;
    const std::vector<std::string> first = texts(subject);
    check_description(subject);
    check_events(subject);
    check_derived(subject);
    check_value_lists(subject);
    check_option_table(subject);
    if (texts(subject) != first)
        report.broken(
            "vp_events",
            "returns different texts at its second call, or overwrites the first ones: names and "
            "tables must be the same at every call, and valid until vp_release");
    subject.release();
}

}  // namespace assay::check
