#include "plugins/effective_address/operand.h"

#include <algorithm>
#include <assay/text.hpp>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <vector>

namespace effective_address {
namespace {

// No larger type must be aligned to its size.
constexpr std::uint16_t kLargestAligned = 64;

bool has_natural_alignment(std::uint16_t bytes) {
    return std::has_single_bit(bytes) && bytes <= kLargestAligned;
}

double scale_to(std::uint64_t whole, const FrequentItems& part) {
    return part.total() == 0 ? 0 : static_cast<double>(whole) / static_cast<double>(part.total());
}

}  // namespace

Operand::Operand(std::uint64_t pc, std::uint16_t bytes, std::uint8_t number, bool writes)
    : alignment_mask_(has_natural_alignment(bytes) ? bytes - 1U : ~std::uint64_t{0}),
      writes_(writes),
      bytes_(bytes),
      pc_(pc),
      number_(number) {}

void Operand::add(const ReferenceRun& run, Footprint::Budget& budget) {
    add_references(run, budget);
    add_frequent(run);
    if (kind_ != kRuns || (++runs_ >= kManyRuns && runs_ * kShortRun > references_)) choose_kind();
}

void Operand::add_references(const ReferenceRun& run, Footprint::Budget& budget) {
    references_ += run.count;
    add_place(run, budget);
}

void Operand::add_frequent(const ReferenceRun& run) {
    if (run.stride == kNoStride)
        ++firsts_;
    else
        strides_.add(static_cast<std::uint64_t>(run.stride), run.count, kMostStrides);
    add_addresses(run);
}

// Sampling of strides begins only when there are too many to count exactly, so that small sets of
// strides never depend on it.
void Operand::choose_kind() {
    const Kind by_addresses = addresses_sampled_ ? kIrregular : kFew;
    kind_ = static_cast<Kind>(by_addresses | (strides_.exact() ? kFewStrides : 0));
}

void Operand::add_other(std::uint64_t address, Footprint::Budget& budget) {
    ++references_;
    add_place({address, 0, 1}, budget);
    if (!(kind_ & kFew)) return;
    add_address(address, 1);
    choose_kind();
}

void Operand::add_stride(std::int64_t stride) {
    strides_.add(static_cast<std::uint64_t>(stride), 1, kMostStrides);
    choose_kind();
}

// The distance to the next sample is pseudo-random, so that it does not follow a rhythm of the
// program.
void Operand::look_at(const ReferenceRun& run) {
    if (run.count >= kLongRun) return add_frequent(run);
    while (until_sample_ <= 0) {
        sample(run.address(static_cast<std::uint64_t>(-until_sample_)), run.stride);
        until_sample_ += 1 + random() % (2 * kSampleOf - 1);
    }
}

void Operand::sample(std::uint64_t address, std::int64_t stride) {
    if (!(kind_ & kFewStrides))
        strides_.add(static_cast<std::uint64_t>(stride), kSampleOf, kMostStrides);
    if (kind_ & kIrregular) add_address(address, kSampleOf);
}

void Operand::add_place(const ReferenceRun& run, Footprint::Budget& budget) {
    const std::uint64_t steps = run.count == 1 ? 0 : static_cast<std::uint64_t>(run.stride);
    if (((run.end | steps) & alignment_mask_) == 0)
        add_footprint(run, budget);
    else
        add_unaligned(run, budget);
}

// The references do not cross lines.
void Operand::add_footprint(const ReferenceRun& run, Footprint::Budget& budget) {
    const std::uint64_t first = run.address(run.count - 1) >> kLineShift,
                        last = run.end >> kLineShift;
    if (first == last || run.count == 1) return footprint_.add(last, budget);
    const std::int64_t line = kLineBytes;
    const bool wraps = run.stride < 0 ? last > first : last < first;  // only in a damaged trace
    if (!wraps && -line <= run.stride && run.stride <= line)
        return footprint_.add_range(std::min(first, last), std::max(first, last), budget);
    for (std::uint64_t i = run.count; i-- > 0;)
        footprint_.add(run.address(i) >> kLineShift, budget);
}

// Adds one reference after the other, unless all have the same address.
void Operand::add_unaligned(const ReferenceRun& run, Footprint::Budget& budget) {
    const std::uint64_t different = run.stride == 0 ? 1 : run.count;
    const std::uint64_t weight = run.count / different;
    const std::uint64_t size_mask = has_natural_alignment(bytes_) ? bytes_ - 1U : 0;
    for (std::uint64_t i = different; i-- > 0;) {
        const std::uint64_t first = run.address(i), last = first + bytes_ - 1;
        footprint_.add_range(first >> kLineShift, last >> kLineShift, budget);
        if (first & size_mask) alignment_.misaligned += weight;
        if (first >> kLineShift != last >> kLineShift) alignment_.line_crossing += weight;
        if (first >> kPageShift != last >> kPageShift) alignment_.page_crossing += weight;
    }
}

void Operand::add_address(std::uint64_t address, std::uint64_t weight) {
    addresses_.add(address, weight, kMostAddresses);
    addresses_sampled_ |= !addresses_.exact();
}

// A repeated address is always counted, without sampling.
void Operand::add_addresses(const ReferenceRun& run) {
    if (run.stride == 0) return add_address(run.end, run.count);
    addresses_sampled_ |= run.count > kMostAddresses;
    const std::uint64_t step = addresses_sampled_ ? kSampleOf : 1;
    for (std::uint64_t i = step == 1 ? 0 : random() % step; i < run.count; i += step)
        add_address(run.address(i), step);
}

// xorshift32 (Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8, 2003).
std::uint32_t Operand::random() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    random_ ^= random_ << 5;
    return random_;
}

Pattern Operand::pattern() const {
    Pattern pattern;
    for (const Item& stride : strides(kMostOfFew))
        (pattern.constant == 0 ? pattern.constant : pattern.few) += stride.count;
    const std::uint64_t whole = references_ - firsts_;
    pattern.constant = std::min(pattern.constant, whole);
    pattern.few = std::min(pattern.few, whole - pattern.constant);
    return pattern;
}

std::vector<Item> Operand::strides(std::size_t most) const {
    return frequent(strides_, most, strides_exact(), references_ - firsts_);
}

std::vector<Item> Operand::addresses(std::size_t most) const {
    return frequent(addresses_, most, addresses_exact(), references_);
}

// An item that was sampled only once or twice is not significant.
std::vector<Item> Operand::frequent(const FrequentItems& items, std::size_t most, bool exact,
                                    std::uint64_t whole) {
    constexpr std::uint64_t kFewestSamples = 4;
    std::vector<Item> found = items.top(most);
    if (exact) return found;
    std::erase_if(found, [](const Item& item) { return item.count < kFewestSamples * kSampleOf; });
    for (Item& item : found) item.count = assay::scaled(item.count, scale_to(whole, items));
    return found;
}

namespace {

constexpr std::uint64_t kLine = std::uint64_t{1} << kLineShift;

// Bytes of the line that belong together, and the threads that use them.
struct Datum {
    std::uint64_t bytes;
    std::set<std::uint32_t> threads;
    const Touch* touch;  // of any one operand
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

// "table + 8" becomes "table".
std::string without_offset(const std::string& data) {
    return data.substr(0, data.find(" + "));
}

std::string with_line(const std::string& what) {
    return "alignas(" + std::to_string(kLine) + ") for " + what;
}

std::string growth(std::uint64_t from, std::uint64_t to) {
    return std::to_string(from) + " -> " + std::to_string(to) + " bytes";
}

// The new line boundaries in a struct.
struct Cuts {
    std::set<std::string> members;    // members that begin a line
    std::set<std::uint64_t> offsets;  // of these members
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
