#include "framework/support/mpi_rank.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <string_view>

namespace assay {
namespace {

constexpr std::array kVariables{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                "MV2_COMM_WORLD_RANK"};

bool is_number(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(),
                                        [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

std::string mpi_rank() {
    for (const char* name : kVariables)
        if (const char* value = std::getenv(name); value && is_number(value)) return value;
    return {};
}

std::string mpi_rank_of(int pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/environ");
    std::string rank;
    std::size_t best = kVariables.size();
    for (std::string variable; std::getline(file, variable, '\0');) {
        const std::size_t equals = variable.find('=');
        if (equals == std::string::npos) continue;
        const auto found =
            std::find(kVariables.begin(), kVariables.end(), variable.substr(0, equals));
        const auto place = static_cast<std::size_t>(found - kVariables.begin());
        if (place >= best || !is_number(std::string_view(variable).substr(equals + 1))) continue;
        best = place;
        rank = variable.substr(equals + 1);
    }
    return rank;
}

}  // namespace assay
