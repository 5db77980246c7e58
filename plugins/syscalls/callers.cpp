#include "plugins/syscalls/callers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace syscalls {

bool is_c_library(std::string_view path) {
    constexpr std::array<std::string_view, 9> kNames{"libc.so",     "libc-",      "libpthread.so",
                                                     "libpthread-", "ld-linux",   "ld-2",
                                                     "ld-musl-",    "libc.musl-", "librt.so"};
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return std::any_of(kNames.begin(), kNames.end(),
                       [name](std::string_view each) { return name.starts_with(each); });
}

bool Callers::is_in_library(std::uint64_t pc) const {
    const trace_object_t* const object = trace_.object(pc);
    return object != nullptr && is_c_library(object->path);
}

bool Callers::has_line(std::uint64_t pc) {
    const auto [found, is_new] = has_line_.try_emplace(pc, false);
    if (is_new) found->second = trace_.frames(pc).front().line != 0;
    return found->second;
}

Place Callers::find(std::uint64_t pc, std::uint32_t context) {
    const auto table = trace_.context_table();
    const auto as_sample = [](std::uint32_t number) -> std::uint64_t {
        return number == 0 ? VP_NO_CONTEXT : number;
    };
    if (table.empty()) return {pc, 0};
    Place outside{pc, as_sample(context)};
    bool found = false;
    for (std::uint64_t at = pc;;) {
        if (!is_in_library(at)) {
            const Place here{at, as_sample(context)};
            if (has_line(at)) return here;
            if (!found) outside = here;
            found = true;
        }
        if (context == 0 || context >= table.size()) return outside;
        at = table[context].call;
        context = table[context].parent;
    }
}

void Callers::prepare(const std::vector<Place>& calls) {
    const auto table = trace_.context_table();
    std::vector<std::uint64_t> pcs;
    for (const Place& call : calls) {
        pcs.push_back(call.pc);
        for (std::uint64_t context = call.context; context != 0 && context < table.size();
             context = table[context].parent)
            pcs.push_back(table[context].call);
    }
    std::sort(pcs.begin(), pcs.end());
    pcs.erase(std::unique(pcs.begin(), pcs.end()), pcs.end());
    std::erase_if(pcs, [this](std::uint64_t pc) { return is_in_library(pc); });
    trace_.prepare_frames(pcs);
}

}  // namespace syscalls
