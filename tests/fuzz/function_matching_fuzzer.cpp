// Feeds garbage to what compares functions of two profiles: lines of a name each, the first
// character of which says whose and in which of two files it is. What is taken from a name makes it
// no longer, but for what stands for unnamed namespaces and lambdas, and no function is lost.
#include "framework/support/function_names.h"
#include "tools/profile/function_matching.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

void check_name(std::string_view name) {
    // "$_", the shortest, becomes "{lambda}".
    constexpr std::size_t kMostTimes = 8;
    const std::size_t most = name.size() * kMostTimes;
    if (assay::without_clones(name).size() > name.size()) std::abort();
    if (assay::without_parameters(name).size() > name.size()) std::abort();
    if (assay::without_numbers(name).size() > most) std::abort();
    if (assay::without_signature(name).size() > most) std::abort();
    if (assay::without_template_arguments(name).size() > name.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    assay::FunctionMatching matching;
    std::vector<std::uint32_t> numbers;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (line.empty()) continue;
        const auto place = static_cast<unsigned char>(line[0]);
        const std::string_view file = (place & 2) != 0   ? "a/a.c"
                                      : (place & 4) != 0 ? "b/a.c"
                                                         : "???";
        check_name(line.substr(1));
        numbers.push_back(matching.add((place & 1) != 0 ? assay::Side::kNew : assay::Side::kOld,
                                       file, line.substr(1)));
    }
    matching.match();
    for (const std::uint32_t number : numbers) {
        const auto shown = matching.shown(number);
        if (matching.file(shown.file).data() == nullptr && !shown.file.empty()) std::abort();
    }
    return 0;
}
