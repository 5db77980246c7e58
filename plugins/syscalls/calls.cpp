#include "plugins/syscalls/calls.h"

#include <algorithm>
#include <array>
#include <assay/text.hpp>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace syscalls {
namespace {

using assay::right;
using assay::with_commas;
using Row = std::pair<std::uint64_t, Tally>;

constexpr std::size_t kCalls = 12, kErrors = 10, kBytes = 18, kTime = 12;

std::vector<Row> sorted(const std::map<std::uint64_t, Tally>& by_number, bool times) {
    std::vector<Row> rows(by_number.begin(), by_number.end());
    std::erase_if(rows, [](const Row& row) { return row.second.calls == 0; });
    std::stable_sort(rows.begin(), rows.end(), [times](const Row& a, const Row& b) {
        return times ? a.second.nanoseconds > b.second.nanoseconds
                     : a.second.calls > b.second.calls;
    });
    return rows;
}

std::string seconds(std::uint64_t nanoseconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6f", static_cast<double>(nanoseconds) / 1e9);
    return text;
}

std::string row(const Tally& tally, bool times, const std::string& name) {
    std::string text =
        right(with_commas(tally.calls), kCalls) + right(with_commas(tally.errors), kErrors) +
        right(with_commas(tally.read), kBytes) + right(with_commas(tally.written), kBytes);
    if (times) text += right(seconds(tally.nanoseconds), kTime);
    return text + "  " + name + "\n";
}

}  // namespace

std::string summarise(const std::map<std::uint64_t, Tally>& by_number, bool times) {
    std::string text = right("calls", kCalls) + right("errors", kErrors) +
                       right("bytes read", kBytes) + right("bytes written", kBytes);
    if (times) text += right("seconds", kTime);
    text += "  system call\n";
    Tally all;
    for (const auto& [number, tally] : sorted(by_number, times)) {
        all += tally;
        text += row(tally, times, name_of_call(number));
    }
    return text + row(all, times, "in all");
}

std::string in_one_line(const std::map<std::uint64_t, Tally>& by_number) {
    constexpr std::size_t kMost = 20;
    std::vector<Row> rows = sorted(by_number, false);
    const bool cut = rows.size() > kMost;
    if (cut) rows.resize(kMost);
    std::string text;
    for (const auto& [number, tally] : rows) {
        if (!text.empty()) text += ", ";
        text += name_of_call(number) + " " + std::to_string(tally.calls);
    }
    return text + (cut ? ", ..." : "");
}

namespace {

struct Named {
    std::uint64_t number;
    const char* name;
};
// Of x86-64, on all hosts: only the native driver records system calls.
constexpr Named kNames[] = {
#include "plugins/syscalls/x86_64_calls.inc"
};

consteval std::uint64_t number_of(std::string_view name) {
    const Named* found = kNames;
    while (found->name != name) ++found;
    return found->number;
}

}  // namespace

std::string name_of_call(std::uint64_t number) {
    const Named* const found = std::lower_bound(
        std::begin(kNames), std::end(kNames), number,
        [](const Named& each, std::uint64_t wanted) { return each.number < wanted; });
    if (found != std::end(kNames) && found->number == number) return found->name;
    return "number " + std::to_string(number);
}

std::string name_of_error(std::uint32_t error) {
    const char* const name = strerrorname_np(static_cast<int>(error));
    return name != nullptr ? name : "error " + std::to_string(error);
}

Moves moves(std::uint64_t number) {
    switch (number) {
        case number_of("read"):
        case number_of("pread64"):
        case number_of("readv"):
        case number_of("preadv"):
        case number_of("preadv2"):
        case number_of("recvfrom"):
        case number_of("recvmsg"):
        case number_of("msgrcv"):
        case number_of("mq_timedreceive"):
        case number_of("getdents"):
        case number_of("getdents64"):
        case number_of("getrandom"):
        case number_of("process_vm_readv"):
            return Moves::kIn;
        case number_of("write"):
        case number_of("pwrite64"):
        case number_of("writev"):
        case number_of("pwritev"):
        case number_of("pwritev2"):
        case number_of("sendto"):
        case number_of("sendmsg"):
        case number_of("vmsplice"):
        case number_of("process_vm_writev"):
            return Moves::kOut;
        case number_of("sendfile"):
        case number_of("splice"):
        case number_of("copy_file_range"):
            return Moves::kBoth;
        default:
            return Moves::kNothing;
    }
}

bool is_c_library(std::string_view path) {
    constexpr std::array<std::string_view, 9> kLibraries{
        "libc.so", "libc-",    "libpthread.so", "libpthread-", "ld-linux",
        "ld-2",    "ld-musl-", "libc.musl-",    "librt.so"};
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return std::any_of(kLibraries.begin(), kLibraries.end(),
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
