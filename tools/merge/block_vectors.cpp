#include "tools/merge/merge.h"

#include "framework/events/block_vectors.h"
#include "framework/events/file.h"
#include "framework/events/lexical.h"
#include "framework/events/reader.h"
#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/format.h>  // format_to: clang does not find it in the library
#include <charconv>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace assay {

namespace {

// Limits memory. No program has so many blocks.
constexpr std::size_t kMostBlocks = std::size_t{1} << 24;
constexpr const char* kTooManyBlocks = "more than 16777216 blocks";

// A block is identified by address and function, because addresses of functions differ between
// builds.
using Block = std::pair<std::uint64_t, std::string>;
using Numbers =
    std::unordered_map<std::uint32_t, std::uint32_t>;  // numbers of a file -> numbers of the result

// Removes a number and the following colon from the front of `text`.
template <typename Number>
std::optional<Number> take_number(std::string_view& text, int base) {
    Number number{};
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number, base);
    if (error != std::errc() || rest == end || *rest != ':') return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()) + 1);
    return number;
}

class Blocks {
  public:
    // Returns the new numbers of the blocks in a file of addresses.
    Numbers read(const std::string& path) {
        Numbers numbers;
        std::uint64_t line = 0;
        const auto fail = [&](const char* why, std::string_view text) {
            throw Error(fmt::format("{}:{}: {} ({})", path, line, why, events::excerpt(text)));
        };
        const auto take = [&](std::string_view text) {
            const std::string_view whole = text;
            ++line;
            if (text.empty() || text.front() == '#') return;
            if (!text.starts_with("F:")) fail("expected F:NUMBER:ADDRESS:FUNCTION", whole);
            text.remove_prefix(2);
            const auto number = take_number<std::uint32_t>(text, 10);
            const auto address = number ? take_number<std::uint64_t>(text, 16) : std::nullopt;
            if (!address) fail("expected F:NUMBER:ADDRESS:FUNCTION", whole);
            if (numbers.size() == kMostBlocks) throw Error(path + ": " + kTooManyBlocks);
            if (!numbers.try_emplace(*number, number_of({*address, std::string(text)})).second)
                fail("the block occurs twice", whole);
        };
        events::LineCutter lines;
        events::read_file(path, [&](std::string_view block) {
            if (lines.feed(block, take)) return;
            ++line;
            fail("the line is too long", lines.begin());
        });
        if (const std::string rest = lines.take_rest(); !rest.empty()) take(rest);
        return numbers;
    }

    void write(const std::string& path) const {
        std::map<std::uint32_t, const Block*> by_number;
        for (const auto& [block, number] : numbers_) by_number[number] = &block;
        events::OutputFile file(path);
        for (const auto& [number, block] : by_number)
            file.write(fmt::format("F:{}:{:x}:{}\n", number, block->first, block->second));
        file.finish();
    }

  private:
    std::uint32_t number_of(Block block) {
        const auto next = static_cast<std::uint32_t>(numbers_.size() + 1);
        return numbers_.try_emplace(std::move(block), next).first->second;
    }

    std::map<Block, std::uint32_t> numbers_;
};

// Writes vectors, with one vector in memory at a time.
class MergedVectors {
  public:
    explicit MergedVectors(const std::string& path) : file_(path) {}

    // `numbers` is null if the file's numbers stay the same.
    void add(const std::string& path, const Numbers* numbers, const std::string& addresses) {
        const std::size_t first = intervals_;
        events::BlockVectorParser parser(path, {.pair =
                                                    [&](std::uint32_t block, std::uint64_t count) {
                                                        if (numbers)
                                                            block = renumbered(block, *numbers,
                                                                               path, addresses);
                                                        add(block, count, path);
                                                    },
                                                .end = [&] { write_vector(); }});
        events::read_file(path, [&](std::string_view block) { parser.feed(block); });
        parser.finish();
        comment_ += intervals_ == first
                        ? fmt::format("# {}: no intervals\n", events::one_line(path))
                        : fmt::format("# {}: intervals {} to {}\n", events::one_line(path), first,
                                      intervals_ - 1);
    }

    void finish() {
        file_.write("\n\n" + comment_);
        file_.finish();
    }

  private:
    static std::uint32_t renumbered(std::uint32_t block, const Numbers& numbers,
                                    const std::string& path, const std::string& addresses) {
        const auto known = numbers.find(block);
        if (known == numbers.end())
            throw Error(
                fmt::format("{}: {} has no address of block {}; does it belong to the same run?",
                            path, addresses, block));
        return known->second;
    }

    void add(std::uint32_t block, std::uint64_t count, const std::string& path) {
        std::uint64_t& sum = vector_[block];
        if (__builtin_add_overflow(sum, count, &sum))
            throw Error(fmt::format("{}: the count of a block exceeds 64 bits", path));
        if (vector_.size() > kMostBlocks) throw Error(path + ": " + kTooManyBlocks);
    }

    void write_vector() {
        std::string line = "T";
        for (const auto& [block, count] : vector_)
            fmt::format_to(std::back_inserter(line), ":{}:{}   ", block, count);
        file_.write(line + "\n");
        vector_.clear();
        ++intervals_;
    }

    events::OutputFile file_;
    std::map<std::uint32_t, std::uint64_t> vector_;
    std::size_t intervals_ = 0;
    std::string comment_;
};

}  // namespace

bool begins_as_block_vectors(const std::string& path) {
    if (!events::can_be_read_again(path)) return false;
    constexpr std::size_t kEnough = 4096;
    const std::string beginning = events::beginning_of_file(path, kEnough);
    if (beginning.empty() || events::begins_as_events_file(path)) return false;
    bool only_remarks = true;
    for (const std::string& line : split(beginning, '\n')) {
        if (line.starts_with("T:") || line.starts_with("T ")) return true;
        only_remarks &= line.empty() || line.starts_with('#');
    }
    return only_remarks;
}

void merge_block_vectors(const BlockVectorFiles& files) {
    Blocks blocks;
    MergedVectors merged(files.out);
    for (std::size_t i = 0; i < files.vectors.size(); ++i) {
        if (files.addresses.empty()) {
            merged.add(files.vectors[i], nullptr, "");
        } else {
            const Numbers numbers = blocks.read(files.addresses[i]);
            merged.add(files.vectors[i], &numbers, files.addresses[i]);
        }
    }
    merged.finish();
    if (!files.addresses_out.empty()) blocks.write(files.addresses_out);
}

}  // namespace assay
