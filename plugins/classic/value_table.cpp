#include "plugins/classic/value_table.h"

#include "plugins/classic/value_kernel.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>

namespace classic {

void RunningTotals::touch(const ValueTables& tables, const trace_record_t* records, std::size_t n) {
    is_touched_.resize(tables.by_site.size());
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t first = tables.by_site[records[i].site].first;
        if (is_touched_[first]) continue;
        is_touched_[first] = true;
        touched_.push_back(first);
    }
}

Totals RunningTotals::of(const ValueTables& tables) {
    counted_.resize(tables.by_site.size());
    for (const std::uint32_t first : touched_) {
        is_touched_[first] = false;
        const Summary summary = tables.summary(first);
        const Totals now{summary.total, summary.zeros, summary.repeated, summary.top()};
        const Totals before = std::exchange(counted_[first], now);
        totals_.values += now.values - before.values;
        totals_.zeros += now.zeros - before.zeros;
        totals_.repeated += now.repeated - before.repeated;
        totals_.top += now.top - before.top;
    }
    touched_.clear();
    return totals_;
}

namespace {

ValueSet& set_of(const ValueTable& table, std::uint64_t value) {
    return table.sets[value * kHashMultiplier >> kHashShift & table.mask];
}

// The eight values of the first set fit into the new sets.
void grow(ValueTable& table) {
    const ValueSet* const before = std::exchange(table.sets, new ValueSet[kSets]());
    table.mask = kSets - 1;
    for (unsigned i = 0; i < kWays; ++i) {
        ValueSet& set = set_of(table, before->values[i]);
        const auto way = std::find(set.counts, set.counts + kWays, 0U) - set.counts;
        set.values[way] = before->values[i];
        set.counts[way] = before->counts[i];
    }
    delete[] before;
}

// The most frequent value first; equal values are combined.
void sort(std::vector<Counted>& values) {
    std::sort(values.begin(), values.end(),
              [](const Counted& a, const Counted& b) { return a.value < b.value; });
    std::size_t kept = 0;
    for (const Counted& each : values) {
        if (kept > 0 && values[kept - 1].value == each.value)
            values[kept - 1].count += each.count;
        else
            values[kept++] = each;
    }
    values.resize(kept);
    std::stable_sort(values.begin(), values.end(),
                     [](const Counted& a, const Counted& b) { return a.count > b.count; });
}

ValueKernel best_kernel() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        return count_avx512;
    if (__builtin_cpu_supports("avx2")) return count_avx2;
#endif
    return count_baseline;
}

}  // namespace

void ValueTable::free() {
    delete[] std::exchange(sets, nullptr);
}

ValueTables::~ValueTables() {
    for (ValueTable& table : by_site) table.free();
}

void ValueTables::add(const ValueTable& table, std::uint64_t pc) {
    const auto site = static_cast<std::uint32_t>(by_site.size());
    by_site.push_back(table);
    by_site[site].first = site;
    if ((table.role != Role::kCounted && table.role != Role::kStored) || table.part != 0) return;
    by_site[site].first = first_sites.try_emplace({pc, table.list}, site).first->second;
}

void ValueTables::count(const trace_record_t* records, std::size_t n) {
    static const ValueKernel kernel = best_kernel();
    kernel(*this, records, n);
}

void ValueTables::count_slowly(std::uint32_t first, std::uint64_t value) {
    ValueTable& table = by_site[first];
    if (table.sets == nullptr) {
        table.sets = new ValueSet[1]();
        table.runs = 1;  // the first value always begins a run
    }
    ValueSet& set = set_of(table, value);
    auto way = std::find(set.values, set.values + kWays, value) - set.values;
    if (way == kWays) {
        way = std::find(set.counts, set.counts + kWays, 0U) - set.counts;
        if (way == kWays && table.mask != 0) return set.lower();
        if (way == kWays) {
            grow(table);
            return count_slowly(first, value);  // all nine values may belong to one set
        }
        set.values[way] = value;
        set.since[way] = set.lowered;
    }
    if (set.counts[way] == kMostCount)
        spilled.push_back({first, {value, std::exchange(set.counts[way], 0)}});
    ++set.counts[way];
}

Summary ValueTables::summary(std::uint32_t first) const {
    Summary summary;
    const ValueTable& table = by_site[first];
    summary.total = table.total;
    summary.zeros = table.zeros;
    summary.repeated = table.total - table.runs;
    for (unsigned s = 0; table.sets && s <= table.mask; ++s) {
        const ValueSet& set = table.sets[s];
        summary.error = std::max(summary.error, set.lowered);
        for (unsigned i = 0; i < kWays; ++i)
            if (const std::uint64_t seen = set.counts[i] + set.lowered - set.since[i])
                summary.values.push_back({set.values[i], seen});
    }
    for (const auto& [of, counted] : spilled)
        if (of == first) summary.values.push_back(counted);
    sort(summary.values);
    return summary;
}

void Summary::shorten(std::size_t most) {
    if (values.size() <= most) return;
    error += values[most].count;
    values.resize(most);
}

std::uint64_t Summary::rest() const {
    return std::accumulate(
        values.begin(), values.end(), total,
        [](std::uint64_t left, const Counted& each) { return left - each.count; });
}

namespace {

// The mandatory prefix in VEX's encoding: none, 66, F3, F2 (Intel SDM volume 2, 2.3.5).
enum Prefix : unsigned { kNoPrefix, k66, kF3, kF2 };

struct Encoding {
    unsigned prefix = kNoPrefix;
    bool wide = false;  // VEX.W or EVEX.W
};

Encoding encoding_of(const trace_instr_t& instr) {
    Encoding found;
    for (unsigned i = 0; i + 3 < instr.length; ++i) {
        const unsigned byte = instr.bytes[i];
        if (byte == 0xc5 && instr.opcode >> 8 >= TRACE_MAP_VECTOR) {
            found.prefix = instr.bytes[i + 1] & 3;
            return found;
        }
        if ((byte == 0xc4 || byte == 0x62) && instr.opcode >> 8 >= TRACE_MAP_VECTOR) {
            found.prefix = instr.bytes[i + 2] & 3;
            found.wide = instr.bytes[i + 2] & 0x80;
            return found;
        }
        if (byte == 0xf2) found.prefix = kF2;
        if (byte == 0xf3) found.prefix = kF3;
        if (byte == 0x66 && found.prefix == kNoPrefix) found.prefix = k66;
        if (byte == 0x0f) break;
    }
    return found;
}

Reading by_prefix(unsigned prefix) {
    return prefix == k66 || prefix == kF2 ? Reading::kDouble : Reading::kSingle;
}

// For opcodes of map 0F. Sources: SDM volume 2, tables.
Reading of_two_byte_map(unsigned byte, unsigned prefix, Operand operand) {
    const bool result = operand == Operand::kResult || operand == Operand::kStored;
    switch (byte) {
        case 0x2a:  // cvtsi2sd and similar ones
            return result ? by_prefix(prefix) : Reading::kInteger;
        case 0x2c:  // cvttsd2si
        case 0x2d:
            return result ? Reading::kInteger : by_prefix(prefix);
        case 0x5a:  // cvtsd2ss and back
            if (!result) return by_prefix(prefix);
            return by_prefix(prefix) == Reading::kDouble ? Reading::kSingle : Reading::kDouble;
        case 0x12:
        case 0x13:  // movlpd and movlps move 64 bits; the lower of two singles is shown
        case 0x16:
        case 0x17:
            return by_prefix(prefix);
        default:
            break;
    }
    const bool floating = byte == 0x10 || byte == 0x11 || byte == 0x14 || byte == 0x15 ||
                          byte == 0x28 || byte == 0x29 || byte == 0x2b || byte == 0x2e ||
                          byte == 0x2f || (byte >= 0x51 && byte <= 0x53) ||
                          (byte >= 0x58 && byte <= 0x5f && byte != 0x5b) || byte == 0xc6;
    return floating ? by_prefix(prefix) : Reading::kInteger;
}

// Registers are captured as doubles, except ax, which is the destination of fnstsw (DF E0). The
// register field of ModRM gives the type of a memory operand. SDM volume 2, tables.
Reading of_x87(const trace_instr_t& instr, Operand operand) {
    const bool in_memory = operand == Operand::kLoaded || operand == Operand::kStored;
    const auto* const end = instr.bytes + instr.length;
    const auto* const opcode =
        std::find(instr.bytes, end, static_cast<std::uint8_t>(instr.opcode & 0xff));
    if (end - opcode < 2) return Reading::kInteger;
    const bool status = opcode[0] == 0xdf && opcode[1] == 0xe0;
    if (!in_memory) return status ? Reading::kInteger : Reading::kDouble;
    if (opcode[1] >= 0xc0) return Reading::kInteger;
    const unsigned extension = opcode[1] >> 3 & 7;
    switch (instr.opcode & 0xff) {
        case 0xd8:
            return Reading::kSingle;
        case 0xdc:
            return Reading::kDouble;
        case 0xd9:
            return extension <= 3 ? Reading::kSingle : Reading::kInteger;
        case 0xdd:
            return extension == 0 || extension == 2 || extension == 3 ? Reading::kDouble
                                                                      : Reading::kInteger;
        default:
            return Reading::kInteger;
    }
}

template <typename Number>
std::string shortest(std::uint64_t bits) {
    Number number;
    std::memcpy(&number, &bits, sizeof number);
    std::array<char, 64> text;
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
    std::string written(text.data(), end);
    // Keeps 1.0 distinct from an integer.
    if (written.find_first_not_of("-0123456789") == std::string::npos) written += ".0";
    return written;
}

}  // namespace

Reading reading_of(const trace_instr_t& instr, Operand operand) {
    const unsigned map = instr.opcode >> 8, byte = instr.opcode & 0xff;
    const Encoding encoding = encoding_of(instr);
    if (map == 0 && byte >= 0xd8 && byte <= 0xdf) return of_x87(instr, operand);
    if (map == 1 || map == TRACE_MAP_VECTOR + 1)
        return of_two_byte_map(byte, encoding.prefix, operand);
    // Fused multiplications and additions.
    const bool fused = byte >= 0x96 && byte <= 0xbf && (byte & 0xf) >= 6;
    if (map == TRACE_MAP_VECTOR + 2 && fused)
        return encoding.wide ? Reading::kDouble : Reading::kSingle;
    return Reading::kInteger;
}

std::string format(Reading reading, std::uint64_t value) {
    if (reading == Reading::kDouble) return shortest<double>(value);
    if (reading == Reading::kSingle) return shortest<float>(value);
    constexpr std::int64_t kFewDigits = 99'999;
    const auto number = static_cast<std::int64_t>(value);
    if (number >= -kFewDigits && number <= kFewDigits) return std::to_string(number);
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
    return "0x" + std::string(digits.data(), end);
}

}  // namespace classic
