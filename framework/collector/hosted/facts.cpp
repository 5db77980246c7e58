#include "framework/collector/hosted/facts.h"

namespace assay::collector {
namespace {

template <typename List, typename AddOne>
void add_list(Message& message, const List& list, AddOne add_one) {
    message.add(list.size());
    for (const auto& element : list) add_one(element);
}

template <typename TakeOne>
void take_list(Fields& fields, TakeOne take_one) {
    for (std::uint64_t left = fields.number(); left > 0; --left) take_one();
}

void add_tables(Message& to, const ProfilerFacts& facts) {
    add_list(to, facts.events, [&](const ProfilerEvent& event) {
        to.add(event.name).add(event.description).add(event.unit);
    });
    add_list(to, facts.derived, [&](const ProfilerDerived& figure) {
        to.add(figure.name).add(figure.formula).add(figure.unit);
    });
    add_list(to, facts.options, [&](const ProfilerOption& option) {
        to.add(option.name).add(option.argument).add(option.help);
        to.add(option.default_value ? 1 : 0)
            .add(option.default_value.value_or(""))
            .add(option.type);
    });
    add_list(to, facts.value_lists, [&](const std::string& list) { to.add(list); });
}

void take_tables(Fields& from, ProfilerFacts& facts) {
    take_list(from, [&] {
        ProfilerEvent& event = facts.events.emplace_back();
        for (std::string* text : {&event.name, &event.description, &event.unit})
            *text = from.text();
    });
    take_list(from, [&] {
        ProfilerDerived& figure = facts.derived.emplace_back();
        for (std::string* text : {&figure.name, &figure.formula, &figure.unit}) *text = from.text();
    });
    take_list(from, [&] {
        ProfilerOption& option = facts.options.emplace_back();
        for (std::string* text : {&option.name, &option.argument, &option.help})
            *text = from.text();
        const bool has_default = from.number() != 0;
        const std::string value = from.text();
        if (has_default) option.default_value = value;
        option.type = static_cast<vp_option_type>(from.number());
    });
    take_list(from, [&] { facts.value_lists.push_back(from.text()); });
}

void add_series(Message& to, const events::Series& series) {
    to.add(series.name).add(series.description).add(series.profiler).add(series.phase);
    to.add(series.thread).add(series.log_x ? 1 : 0).add(series.adds ? 1 : 0).add(series.each);
    to.add(series.x.name).add(series.x.unit);
    add_list(to, series.columns,
             [&](const events::Axis& column) { to.add(column.name).add(column.unit); });
    add_list(to, series.numbers, [&](std::uint64_t number) { to.add(number); });
}

// Their limits are those of the events file, which what the profiler has written over may exceed.
events::Series take_series(Fields& from) {
    events::Series series;
    for (std::string* text : {&series.name, &series.description, &series.profiler, &series.phase})
        *text = from.text();
    series.thread = static_cast<std::uint32_t>(from.number());
    series.log_x = from.number() != 0;
    series.adds = from.number() != 0;
    series.each = from.number();
    for (std::string* text : {&series.x.name, &series.x.unit}) *text = from.text();
    take_list(from, [&] {
        std::string name = from.text();
        series.columns.push_back({std::move(name), from.text()});
    });
    take_list(from, [&] { series.numbers.push_back(from.number()); });
    if (events::defect(series)) throw GarbledMessage("its process has sent garbage");
    return series;
}

}  // namespace

void add(Message& to, const ProfilerFacts& facts) {
    to.add(facts.name).add(facts.description);
    add_tables(to, facts);
    to.add(facts.has_preface ? 1 : 0).add(facts.warms_up ? 1 : 0);
    for (const auto* events : {&facts.left_out, &facts.unscaled})
        add_list(to, *events, [&](std::uint32_t event) { to.add(event); });
    add_list(to, facts.no_error, [&](const auto& entry) { to.add(entry.first).add(entry.second); });
    add_list(to, facts.descriptions,
             [&](const auto& entry) { to.add(entry.first).add(entry.second); });
    add_list(to, facts.parts, [&](const std::string& part) { to.add(part); });
    add_list(to, facts.told_totals, [&](bool told) { to.add(told ? 1 : 0); });
    add_list(to, facts.series, [&](const events::Series& series) { add_series(to, series); });
}

ProfilerFacts take_facts(Fields& from) {
    ProfilerFacts facts;
    facts.name = from.text();
    facts.description = from.text();
    take_tables(from, facts);
    facts.has_preface = from.number() != 0;
    facts.warms_up = from.number() != 0;
    for (auto* events : {&facts.left_out, &facts.unscaled})
        take_list(from, [&] { events->insert(static_cast<std::uint32_t>(from.number())); });
    take_list(from, [&] {
        const auto event = static_cast<std::uint32_t>(from.number());
        facts.no_error[event] = from.text();
    });
    take_list(from, [&] {
        std::string name = from.text();
        facts.descriptions.emplace_back(std::move(name), from.text());
    });
    take_list(from, [&] { facts.parts.push_back(from.text()); });
    take_list(from, [&] { facts.told_totals.push_back(from.number() != 0); });
    take_list(from, [&] {
        if (facts.series.size() == events::kMostSeries)
            throw GarbledMessage("its process has sent garbage");
        facts.series.push_back(take_series(from));
    });
    return facts;
}

}  // namespace assay::collector
