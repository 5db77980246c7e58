#include "tools/code/object_code.h"

#include "framework/support/error.h"
#include "framework/symbols/data_symbols.h"
#include "framework/symbols/debug_image.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

namespace assay {
namespace {

constexpr const char* kDebugRoot = "/usr/lib/debug";

std::filesystem::path file_name(const std::string& path) {
    return std::filesystem::path(path).filename();
}

}  // namespace

ObjectCode::ObjectCode(const events::Object& object, const std::string& path)
    : path_(path.empty() ? object.path : path), file_(symbols::ElfFile::open(path_)) {
    if (!file_) {
        problem_ = path_.starts_with('[')
                       ? fmt::format("{} has no file", path_)
                       : fmt::format(
                             "{} cannot be read as a program or library; if it has "
                             "moved, give its new path: assay list FILE PROGRAM",
                             path_);
        return;
    }
    elf_ = isa::kind_of_file(file_->descriptor());
    const std::string now = file_->build_id();
    if (!object.build_id.empty() && now != object.build_id) {
        problem_ = fmt::format(
            "{} has changed since the profile: its build id is {}, the profile's is {}; profile "
            "again, or give the path of the old file: assay list FILE PROGRAM",
            path_, now.empty() ? "none" : now, object.build_id);
        file_.reset();
        return;
    }
    debug_file_ = symbols::find_debug_file(*file_, kDebugRoot);
    for (symbols::ElfFile* const file : {file_.get(), debug_file_.get()})
        if (file) file->close_descriptor();
}

std::span<const std::uint8_t> ObjectCode::bytes(std::uint64_t address) const {
    const symbols::Section* const section = file_ ? file_->section_at(address) : nullptr;
    const Elf_Data* const data = section ? file_->data(*section) : nullptr;
    const std::uint64_t offset = section ? address - section->header.sh_addr : 0;
    if (!data || offset >= data->d_size) return {};
    return {static_cast<const std::uint8_t*>(data->d_buf) + offset, data->d_size - offset};
}

std::vector<symbols::FunctionRange> ObjectCode::functions(
    std::span<const std::uint64_t> addresses) {
    if (!file_) return {};
    return symbols::functions_with(*file_, debug_file_.get(), addresses, names_);
}

std::vector<std::string_view> ObjectCode::names(std::span<const std::uint64_t> addresses) {
    std::vector<std::string_view> names(addresses.size());
    if (!file_) return names;
    const std::vector<symbols::FunctionName> found =
        symbols::symbol_names(*file_, debug_file_.get(), addresses, names_);
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = found[i].readable;
    return names;
}

std::vector<std::unique_ptr<ObjectCode>> open_objects(const std::vector<events::Object>& objects,
                                                      const std::string& program) {
    std::string build_id;
    if (!program.empty()) {
        const auto file = symbols::ElfFile::open(program);
        if (!file) throw Error(fmt::format("{} cannot be read as a program or library", program));
        build_id = file->build_id();
    }
    const auto stands_in = [&](const events::Object& object) {
        return !program.empty() && ((!build_id.empty() && build_id == object.build_id) ||
                                    file_name(program) == file_name(object.path));
    };
    std::vector<std::unique_ptr<ObjectCode>> code;
    std::string paths;
    bool used = program.empty();
    for (const events::Object& object : objects) {
        used |= stands_in(object);
        code.push_back(std::make_unique<ObjectCode>(object, stands_in(object) ? program : ""));
        paths += (paths.empty() ? "" : ", ") + object.path;
    }
    if (!used)
        throw Error(
            fmt::format("{} matches no object of the profile by build id or name; the "
                        "objects are: {}",
                        program, paths));
    return code;
}

std::uint64_t branch_target(const native::Instruction& instruction) {
    switch (instruction.form->flow) {
        case native::Flow::kJump:
        case native::Flow::kConditional:
        case native::Flow::kCounted:
        case native::Flow::kCall:
            return instruction.target();
        default:
            return 0;
    }
}

namespace {

std::string with_offset(std::string_view name, std::uint64_t offset) {
    return offset == 0 ? std::string(name) : fmt::format("{}+{:#x}", name, offset);
}

}  // namespace

CodeText print_code(const Disassembler& disassembler, native::Decoder& decoder,
                    const ObjectCode& code, std::uint64_t address) {
    constexpr std::size_t kLongestInstruction = 15;  // bytes; Intel SDM vol. 2, 2.3.11
    std::span<const std::uint8_t> bytes = code.bytes(address);
    bytes = bytes.first(std::min(bytes.size(), kLongestInstruction));
    Disassembler::Text printed = disassembler.print(bytes, address, code.elf());
    CodeText text{std::move(printed.text), printed.length, 0};
    native::Instruction instruction;
    isa::Instruction described;
    const isa::Architecture* const architecture = isa::architecture_of(code.elf());
    if (code.elf() == isa::kX86) {
        if (decoder.decode(bytes, address, instruction)) text.target = branch_target(instruction);
    } else if (architecture && architecture->describe && architecture->describe(bytes, described) &&
               described.is_direct) {
        text.target = address + static_cast<std::uint64_t>(described.distance);
    }
    return text;
}

void name_targets(std::span<CodeText* const> texts, ObjectCode& code) {
    std::vector<std::uint64_t> targets;
    for (const CodeText* text : texts)
        if (text->target != 0) targets.push_back(text->target);
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    const std::vector<std::string_view> names = code.names(targets);
    const std::vector<symbols::FunctionRange> functions = code.functions(targets);
    for (CodeText* text : texts) {
        const std::uint64_t target = text->target;
        if (target == 0) continue;
        const auto at = std::lower_bound(targets.begin(), targets.end(), target);
        const std::string_view name = names[static_cast<std::size_t>(at - targets.begin())];
        if (name.empty()) continue;
        // The last function that begins at or before the target.
        const auto next =
            std::upper_bound(functions.begin(), functions.end(), target,
                             [](std::uint64_t address, const symbols::FunctionRange& function) {
                                 return address < function.low;
                             });
        const bool is_known = next != functions.begin() && target < std::prev(next)->high &&
                              std::prev(next)->name == name;
        text->text +=
            fmt::format(" <{}>", with_offset(name, is_known ? target - std::prev(next)->low : 0));
    }
}

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
    // Link-time addresses, in the order of the values.
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
