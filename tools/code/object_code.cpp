#include "tools/code/object_code.h"

#include "framework/support/error.h"
#include "framework/symbols/data_symbols.h"
#include "framework/symbols/debug_image.h"

#include <Zydis/Zydis.h>
#include <capstone/capstone.h>
#include <dlfcn.h>
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
                             "{} cannot be read as an x86-64 program or library; if it has "
                             "moved, give its new path: assay list FILE PROGRAM",
                             path_);
        return;
    }
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
        if (!file)
            throw Error(fmt::format("{} cannot be read as an x86-64 program or library", program));
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
                    std::span<const std::uint8_t> bytes, std::uint64_t address) {
    constexpr std::size_t kLongestInstruction = 15;  // bytes; Intel SDM vol. 2, 2.3.11
    bytes = bytes.first(std::min(bytes.size(), kLongestInstruction));
    Disassembler::Text printed = disassembler.print(bytes, address);
    CodeText code{std::move(printed.text), printed.length, 0};
    native::Instruction instruction;
    if (decoder.decode(bytes, address, instruction)) code.target = branch_target(instruction);
    return code;
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

namespace {

std::string aligned(std::string_view mnemonic, std::string_view operands) {
    constexpr std::size_t kWidth = 7;
    if (operands.empty()) return std::string(mnemonic);
    return fmt::format("{:<{}} {}", mnemonic, kWidth, operands);
}

template <typename Function>
Function* function_of(void* library, const char* name) {
    return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

// Loads Capstone only when it is needed: its 75,000 relocations would cost every command and every
// run of a program a millisecond.
struct Disassembler::Capstone {
    static constexpr int kVersion = CS_API_MAJOR;
    const std::string name = fmt::format("libcapstone.so.{}", kVersion);
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    decltype(&cs_open) open = function_of<decltype(cs_open)>(library, "cs_open");
    decltype(&cs_option) option = function_of<decltype(cs_option)>(library, "cs_option");
    decltype(&cs_disasm) disasm = function_of<decltype(cs_disasm)>(library, "cs_disasm");
    decltype(&cs_free) free = function_of<decltype(cs_free)>(library, "cs_free");
    decltype(&cs_close) close = function_of<decltype(cs_close)>(library, "cs_close");
    decltype(&cs_version) version = function_of<decltype(cs_version)>(library, "cs_version");

    // 0 if Capstone cannot be used.
    csh begin(Syntax syntax) const {
        csh handle = 0;
        if (library == nullptr || !open || !option || !disasm || !free || !close ||
            open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
            return 0;
        option(handle, CS_OPT_SYNTAX,
               syntax == Syntax::kAtt ? CS_OPT_SYNTAX_ATT : CS_OPT_SYNTAX_INTEL);
        return handle;
    }
};

const Disassembler::Capstone& Disassembler::capstone() {
    static const Capstone loaded;
    return loaded;
}

std::string Disassembler::capstone_version() {
    if (capstone().library == nullptr || !capstone().version) return "none";
    int major = 0, minor = 0;
    capstone().version(&major, &minor);
    return fmt::format("{}.{}", major, minor);
}

Disassembler::Disassembler(Syntax syntax) : syntax_(syntax), handle_(capstone().begin(syntax)) {}

Disassembler::~Disassembler() {
    csh handle = handle_;
    if (handle != 0) capstone().close(&handle);
}

Disassembler::Text Disassembler::print(std::span<const std::uint8_t> code,
                                       std::uint64_t address) const {
    cs_insn* found = nullptr;
    if (handle_ == 0 ||
        capstone().disasm(handle_, code.data(), code.size(), address, 1, &found) != 1)
        return print_with_zydis(code, address);
    Text text{aligned(found->mnemonic, found->op_str), found->size};
    capstone().free(found, 1);
    return text;
}

Disassembler::Text Disassembler::print_with_zydis(std::span<const std::uint8_t> code,
                                                  std::uint64_t address) const {
    ZydisDecoder decoder;
    ZydisFormatter formatter;
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatterInit(&formatter, syntax_ == Syntax::kAtt ? ZYDIS_FORMATTER_STYLE_ATT
                                                           : ZYDIS_FORMATTER_STYLE_INTEL);
    // In the same style as Capstone.
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
    char text[256];
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &instruction, operands)) ||
        !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &instruction, operands,
                                                      instruction.operand_count_visible, text,
                                                      sizeof text, address, nullptr)))
        return {"(bad)", 0};
    const std::string_view whole = text;
    const std::size_t blank = whole.find(' ');
    const bool bare = blank == std::string_view::npos;
    return {aligned(whole.substr(0, blank), bare ? "" : whole.substr(blank + 1)),
            instruction.length};
}

}  // namespace assay
