#include "tools/report/assembly.h"

#include "tools/code/object_code.h"

#include <fmt/core.h>
#include <algorithm>
#include <tuple>

namespace assay::report {

Assembly::Assembly(const Profile& profile, const Profile* old, const FunctionList& functions,
                   const DisplayNames& names, std::size_t most)
    : names_(names), profile_(profile), old_(old) {
    choose(functions, most);
    disassemble();
    read_old();
}

void Assembly::choose(const FunctionList& functions, std::size_t most) {
    std::vector<std::uint32_t> order(profile_.functions().size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return functions.row_of(a) < functions.row_of(b);
    });
    std::size_t count = 0;
    for (const std::uint32_t number : order) {
        const Profile::Function& function = profile_.functions()[number];
        std::size_t more = 0;
        for (std::uint32_t place = function.first_place; place < function.end_place; ++place)
            more += profile_.instructions(place).size();
        if (count + more > most) {
            left_out_ += more;
            continue;
        }
        count += more;
        for (std::uint32_t place = function.first_place; place < function.end_place; ++place)
            for (const Profile::Instruction& at : profile_.instructions(place))
                rows_[profile_.places()[place].file].push_back({&at, functions.row_of(number)});
    }
    for (auto& [file, rows] : rows_)
        std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
            return std::tie(a.at->object, a.at->address, a.at->line, a.function, a.at->site) <
                   std::tie(b.at->object, b.at->address, b.at->line, b.function, b.at->site);
        });
}

void Assembly::disassemble() {
    for (const auto& [file, rows] : rows_)
        for (const Row& row : rows) code_.try_emplace({row.at->object, row.at->address});
    problems_.resize(profile_.objects().size());
    const Disassembler disassembler(Syntax::kAtt);
    native::Decoder decoder;
    for (auto begin = code_.begin(); begin != code_.end();) {
        const std::uint32_t object = begin->first.first;
        const auto end = code_.lower_bound({object + 1, 0});
        ObjectCode code(profile_.objects()[object], "");
        problems_[object] = code.problem();
        std::vector<CodeText*> texts;
        for (auto at = begin; at != end; ++at) {
            if (code.bytes(at->first.second).empty()) continue;
            at->second = print_code(disassembler, decoder, code, at->first.second);
            texts.push_back(&at->second);
        }
        name_targets(texts, code);
        begin = end;
    }
}

// Reads old counts only of unchanged objects, because addresses differ between builds.
void Assembly::read_old() {
    is_same_.resize(profile_.objects().size());
    if (!old_) return;
    std::vector<std::int64_t> objects(old_->objects().size(), -1);
    for (std::size_t i = 0; i < objects.size(); ++i)
        for (std::size_t j = 0; j < is_same_.size(); ++j)
            if (!profile_.objects()[j].build_id.empty() &&
                profile_.objects()[j].build_id == old_->objects()[i].build_id) {
                objects[i] = static_cast<std::int64_t>(j);
                is_same_[j] = !old_->instructions().empty();
            }
    for (const Profile::Instruction& at : old_->instructions()) {
        if (objects[at.object] < 0) continue;
        const Address address = {static_cast<std::uint32_t>(objects[at.object]), at.address};
        if (!code_.contains(address)) continue;
        Column& sum = old_counts_.try_emplace(address, profile_.events().size()).first->second;
        old_->counts().add_to(sum, at.row);
    }
}

// Returns the index of a text such as "main, walk.c:12 < ...", from the innermost call to the
// function that was not inlined.
std::uint64_t Assembly::number_of_site(std::uint32_t site) {
    const auto [found, is_new] = site_numbers_.try_emplace(site, sites_.size());
    if (!is_new) return found->second;
    std::string text;
    for (std::uint32_t at = site; at != 0; at = profile_.sites()[at].parent) {
        const Profile::Site& each = profile_.sites()[at];
        const std::string_view file = profile_.text(each.file);
        text += fmt::format("{}{}, {}:{}", text.empty() ? "" : ", in ",
                            names_(profile_.text(each.function)), file.substr(file.rfind('/') + 1),
                            each.line);
    }
    sites_.push_back(std::move(text));
    return found->second;
}

void Assembly::write(Strings::Id file, JsonWriter& json) {
    const auto found = rows_.find(file);
    if (found == rows_.end()) return json.null();
    const std::size_t events = profile_.events().size();
    const std::vector<Row>& rows = found->second;
    Columns counts(events), old(events);
    Column row(events);
    const Column none(events);
    std::vector<std::uint64_t> lines, functions, objects, lengths, sites;
    std::vector<std::string> texts, addresses;
    for (const Row& each : rows) {
        const Address address = {each.at->object, each.at->address};
        const CodeText& code = code_.at(address);
        profile_.counts().read(each.at->row, row);
        counts.add(row);
        const auto before = old_counts_.find(address);
        old.add(before == old_counts_.end() ? none : before->second);
        lines.push_back(each.at->line);
        functions.push_back(each.function);
        objects.push_back(each.at->object);
        addresses.push_back(fmt::format("{:x}", each.at->address));
        lengths.push_back(code.length);
        texts.push_back(code.text);
        sites.push_back(number_of_site(each.at->site));
    }
    json.begin_object();
    json.numbers("line", lines);
    json.numbers("function", functions);
    json.numbers("object", objects);
    json.numbers("length", lengths);
    json.numbers("site", sites);
    json.texts("address", addresses);
    json.texts("text", texts);
    counts.write("counts", json);
    if (old_) old.write("old", json);
    json.end_object();
}

void Assembly::write_summary(JsonWriter& json) const {
    if (profile_.instructions().empty()) return json.null();
    json.begin_object();
    json.number("leftOut", left_out_);
    json.texts("sites", sites_);
    json.begin_array("objects");
    for (std::size_t i = 0; i < profile_.objects().size(); ++i) {
        json.begin_object();
        json.text("path", profile_.objects()[i].path);
        json.text("problem", problems_[i]);
        json.boolean("isSame", is_same_[i]);
        json.end_object();
    }
    json.end_array();
    json.end_object();
}

}  // namespace assay::report
