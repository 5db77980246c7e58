#include "tools/code/object_code.h"

#include "framework/support/error.h"
#include "framework/symbols/debug_file.h"

#include <fmt/core.h>
#include <filesystem>

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
                       ? fmt::format("{} is in no file", path_)
                       : fmt::format(
                             "{} cannot be read as an x86-64 program or library: if it has "
                             "been moved, say where it is: assay list FILE PROGRAM",
                             path_);
        return;
    }
    const std::string now = file_->build_id();
    if (!object.build_id.empty() && now != object.build_id) {
        problem_ = fmt::format(
            "{} is not what was profiled: its build id is {}, that of the profile {}; profile "
            "again, or say where the other one is: assay list FILE PROGRAM",
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
            fmt::format("{} has neither the build id nor the name of an object of the "
                        "profile, which are: {}",
                        program, paths));
    return code;
}

}  // namespace assay
