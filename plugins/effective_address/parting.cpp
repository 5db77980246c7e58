#include "plugins/effective_address/parting.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <vector>

namespace effective_address {
namespace {

constexpr std::uint64_t kLine = std::uint64_t{1} << kLineShift;

// Bytes of the line that belong together, and the threads that use them.
struct Datum {
    std::uint64_t bytes;
    std::set<std::uint32_t> threads;
    const Touch* touch;  // of one operand
};

std::uint64_t first_byte(std::uint64_t bytes) {
    return static_cast<std::uint64_t>(std::countr_zero(bytes));
}

std::vector<Datum> data_of(const FalselyShared& line) {
    std::vector<const Touch*> touches;
    for (const Touch& touch : line.touches) touches.push_back(&touch);
    std::sort(touches.begin(), touches.end(), [](const Touch* a, const Touch* b) {
        return first_byte(a->bytes) < first_byte(b->bytes);
    });
    std::vector<Datum> data;
    for (const Touch* touch : touches) {
        if (data.empty() || (data.back().bytes & touch->bytes) == 0) data.push_back({0, {}, touch});
        data.back().bytes |= touch->bytes;
        data.back().threads.insert(touch->thread);
    }
    return data;
}

std::uint64_t whole_lines(std::uint64_t bytes) {
    return (bytes + kLine - 1) / kLine * kLine;
}

// "table + 8" is of table.
std::string without_offset(const std::string& data) {
    return data.substr(0, data.find(" + "));
}

std::string with_line(const std::string& what) {
    return "alignas(" + std::to_string(kLine) + ") for " + what;
}

std::string growth(std::uint64_t from, std::uint64_t to) {
    return std::to_string(from) + " -> " + std::to_string(to) + " bytes";
}

// A struct that is to be cut into lines.
struct Cuts {
    std::set<std::string> members;    // that begin one
    std::set<std::uint64_t> offsets;  // of these
    std::uint64_t bytes = 0;

    std::uint64_t bytes_then() const {
        std::uint64_t sum = 0, last = 0;
        for (const std::uint64_t offset : offsets) {
            sum += whole_lines(offset - last);
            last = offset;
        }
        return sum + whole_lines(bytes - last);
    }
};

}  // namespace

std::string parting(const FalselyShared& line, const NamedField& field,
                    const std::function<std::string(std::uint64_t)>& data) {
    const std::uint64_t address = line.touches.front().line << kLineShift;
    std::map<std::string, Cuts> structs;
    std::vector<std::string> advice;
    const auto add = [&](const std::string& one) {
        if (std::find(advice.begin(), advice.end(), one) == advice.end()) advice.push_back(one);
    };
    const std::vector<Datum> all = data_of(line);
    for (std::size_t i = 1; i < all.size(); ++i) {
        if (all[i].threads == all[i - 1].threads) continue;
        const std::uint64_t before = address + first_byte(all[i - 1].bytes);
        const std::uint64_t here = address + first_byte(all[i].bytes);
        const Field one = field(all[i - 1].touch->operand, before);
        const Field other = field(all[i].touch->operand, here);
        const std::string object = without_offset(data(here));
        const bool known =
            other.is_struct && one.start != 0 && other.start != 0 && one.type == other.type;
        if (known && one.start == other.start) {
            Cuts& cuts = structs[other.type];
            cuts.members.insert(other.type + "." + other.aligned);
            cuts.offsets.insert(here - other.start);
            cuts.bytes = other.bytes;
        } else if (known) {
            add(with_line(other.type) + " (" + growth(other.bytes, whole_lines(other.bytes)) + ")");
        } else if (object.empty()) {
            add(with_line("what is at byte " + std::to_string(first_byte(all[i].bytes))));
        } else if (object == without_offset(data(before))) {
            add("elements of " + object + " " + std::to_string(kLine) + " bytes apart");
        } else {
            add(with_line(object));
        }
    }
    for (const auto& [name, cuts] : structs) {
        std::string members;
        for (const std::string& member : cuts.members)
            members += (members.empty() ? "" : " and ") + member;
        add(with_line(members) + " (" + name + ": " + growth(cuts.bytes, cuts.bytes_then()) + ")");
    }
    std::string out;
    for (const std::string& one : advice) out += (out.empty() ? "" : ", ") + one;
    return out;
}

}  // namespace effective_address
