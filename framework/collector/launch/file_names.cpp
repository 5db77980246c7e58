#include "framework/collector/launch/file_names.h"

#include "framework/support/text.h"

#include <fmt/core.h>
#include <cctype>
#include <filesystem>
#include <system_error>

namespace assay::collector {
namespace {

bool has_process_id(std::string_view pattern) {
    for (std::size_t at = pattern.find('%'); at != std::string_view::npos;
         at = pattern.find('%', at + 2))
        if (pattern.substr(at + 1).starts_with('p')) return true;
    return false;
}

// A device or a pipe stays what it is.
std::string append(std::string name, std::string_view what) {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(name, error);
    if (exists(status) && !is_regular_file(status)) return name;
    std::string_view ending;
    for (const std::string_view compressed : {".gz", ".zst"})
        if (name.ends_with(compressed)) ending = compressed;
    name.resize(name.size() - ending.size());
    return fmt::format("{}.{}{}", name, what, ending);
}

}  // namespace

std::string file_of_process(std::string_view pattern, const Image& image) {
    std::string name = expand_file_name(pattern, image.pid, image.program);
    return image.of_first_process || has_process_id(pattern)
               ? name
               : append(name, std::to_string(image.pid));
}

std::string file_of_image(std::string_view pattern, const Image& image) {
    return append(file_of_process(pattern, image), std::to_string(image.number));
}

std::string own_file_of_image(std::string_view pattern, const Image& image) {
    std::string name = file_of_process(pattern, image);
    return image.number == 1 ? name : append(name, fmt::format("image{}", image.number));
}

std::string file_of_part(std::string_view file, std::string_view name) {
    constexpr std::size_t kLongest = 100;
    std::string safe(name.substr(0, kLongest));
    for (char& c : safe)
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
    return append(std::string(file), safe);
}

}  // namespace assay::collector
