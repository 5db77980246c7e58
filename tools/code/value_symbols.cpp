#include "tools/code/value_symbols.h"

#include "framework/symbols/data_symbols.h"
#include "tools/code/object_code.h"

#include <fmt/core.h>
#include <algorithm>
#include <optional>

namespace assay {
namespace {

std::string with_offset(std::string_view name, std::uint64_t offset) {
    return offset == 0 ? std::string(name) : fmt::format("{}+{:#x}", name, offset);
}

}  // namespace

ValueSymbols::ValueSymbols(const std::vector<events::Object>& objects,
                           std::vector<std::uint64_t> values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    for (std::size_t i = 0; i < objects.size(); ++i)
        if (objects[i].load) add(objects[i], i == 0, values);
}

void ValueSymbols::add(const events::Object& object, bool is_first,
                       const std::vector<std::uint64_t>& values) {
    ObjectCode code(object, "");
    if (!code.problem().empty()) return;
    const auto data = symbols::DataSymbols::open(code.path());
    if (!data) return;
    // Link-time addresses, sorted as the values are.
    std::vector<std::uint64_t> addresses;
    for (const std::uint64_t value : values)
        if (value >= *object.load && data->find(value - *object.load))
            addresses.push_back(value - *object.load);
    if (addresses.empty()) return;
    const std::vector<symbols::FunctionRange> functions = code.functions(addresses);
    const std::vector<std::string_view> code_names = code.names(addresses);
    const std::string where =
        is_first ? "" : fmt::format(" in {}", object.path.substr(object.path.rfind('/') + 1));
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        const std::uint64_t address = addresses[i];
        const auto function = std::find_if(
            functions.begin(), functions.end(),
            [&](const auto& each) { return address >= each.low && address < each.high; });
        const auto found = data->find(address);
        std::string name;
        if (function != functions.end())
            name = with_offset(function->name, address - function->low);
        else if (!code_names[i].empty())  // an entry of a procedure linkage table
            name = std::string(code_names[i]);
        else
            name = with_offset(found->symbol->name, address - found->symbol->start);
        names_.try_emplace(address + *object.load, name + where);
    }
}

std::string_view ValueSymbols::name(std::uint64_t value) const {
    const auto found = names_.find(value);
    return found == names_.end() ? std::string_view() : found->second;
}

}  // namespace assay
