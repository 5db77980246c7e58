#include "tools/profile/display_names.h"

#include "framework/support/plain_names.h"

#include <vector>

namespace assay {
namespace {

// What a name leaves out, from the shortest form on.
enum class Form : std::uint8_t { kFunction, kTypes, kFull };

std::string form_of(std::string_view name, Form form) {
    return form == Form::kFunction ? plain_function(name)
           : form == Form::kTypes  ? plain_types(name)
                                   : std::string(name);
}

struct Shown {
    std::string_view name;
    Form form;
    std::string text;
};

// Gives longer forms to names with equal texts. Returns true if no texts are equal. A full name can
// equal the short form of another name, which then gets longer.
bool tell_apart(std::vector<Shown>& names) {
    std::unordered_map<std::string_view, std::size_t> uses;
    for (const Shown& each : names) ++uses[each.text];
    std::vector<Shown*> equal;
    for (Shown& each : names)
        if (each.form != Form::kFull && uses[each.text] > 1) equal.push_back(&each);
    for (Shown* each : equal) {
        each->form = each->form == Form::kFunction ? Form::kTypes : Form::kFull;
        each->text = form_of(each->name, each->form);
    }
    return equal.empty();
}

}  // namespace

NameStyle name_style(std::string_view text) {
    return text == "full" ? NameStyle::kFull : NameStyle::kShort;
}

void DisplayNames::add(std::string_view function) {
    if (style_ == NameStyle::kShort) functions_.insert(function);
}

void DisplayNames::add(const Profile& profile) {
    for (std::size_t i = 0; i < profile.by_source().size(); ++i)
        add(profile.by_source().name_text(i));
    // Contexts and places outnumber names by far.
    std::vector<bool> is_added(profile.strings().size());
    const auto add_id = [&](Strings::Id name) {
        if (is_added[name]) return;
        is_added[name] = true;
        add(profile.text(name));
    };
    for (const Profile::Place& place : profile.places()) add_id(place.function);
    for (const Profile::Site& site : profile.sites().subspan(1)) add_id(site.function);
    for (const Profile::Context& context : profile.contexts().subspan(1)) add_id(context.function);
    for (const auto& [call, costs] : profile.calls()) {
        add_id(call.function);
        add_id(call.callee);
    }
}

void DisplayNames::finish() {
    std::vector<Shown> names;
    names.reserve(functions_.size());
    for (const std::string_view name : functions_)
        names.push_back({name, Form::kFunction, plain_function(name)});
    functions_.clear();
    // More rounds occur only in files that were made for that. Full names always differ.
    constexpr int kMostRounds = 8;
    int rounds = 0;
    while (!tell_apart(names))
        if (++rounds == kMostRounds)
            for (Shown& each : names) each = {each.name, Form::kFull, std::string(each.name)};
    // operator() makes the other texts.
    for (Shown& each : names)
        if (each.form == Form::kFull || (each.form == Form::kFunction && each.text != each.name))
            shown_.emplace(each.name, std::move(each.text));
}

std::string DisplayNames::operator()(std::string_view function) const {
    if (style_ == NameStyle::kFull) return std::string(function);
    const auto found = shown_.find(function);
    return found == shown_.end() ? plain_types(function) : found->second;
}

std::string DisplayNames::of_type(std::string_view type) const {
    return style_ == NameStyle::kFull ? std::string(type) : plain_types(type);
}

std::string DisplayNames::of_site(std::string_view site) const {
    const std::size_t end = site.ends_with(')') ? site.rfind(" (") : std::string_view::npos;
    return end == std::string_view::npos ? of_type(site)
                                         : (*this)(site.substr(0, end)).append(site.substr(end));
}

std::string DisplayNames::of_group(const Groups::Group& group) const {
    const std::string_view name = group.name, kind = group.attribute("class");
    if (kind == "heap" || kind == "mapping") return of_site(name);
    const std::size_t end =
        group.kind == "object" && kind == "stack" ? name.rfind(": ") : std::string_view::npos;
    return end == std::string_view::npos ? of_type(name)
                                         : (*this)(name.substr(0, end)).append(name.substr(end));
}

}  // namespace assay
