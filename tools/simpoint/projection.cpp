#include "tools/simpoint/projection.h"

#include "framework/events/block_vectors.h"
#include "framework/events/file.h"
#include "framework/support/error.h"
#include "tools/block_vectors/simulation_points.h"
#include "tools/simpoint/random.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay::simpoint {
namespace {

class Projector {
  public:
    Projector(std::string path, std::size_t dimensions, std::uint64_t seed)
        : path_(std::move(path)), seed_(seed), sum_(dimensions), row_(dimensions) {
        intervals_.points.dimensions = dimensions;
    }

    void add(std::uint32_t block, std::uint64_t count) {
        if (instructions_ + count < instructions_)
            throw Error(path_ + ": an interval of 2^64 instructions or more");
        instructions_ += count;
        intervals_.blocks = std::max<std::uint64_t>(intervals_.blocks, block);
        const std::span<const double> row = row_of(block);
        for (std::size_t d = 0; d < sum_.size(); ++d)
            sum_[d] += static_cast<double>(count) * row[d];
    }

    void end() {
        if (intervals_.instructions.size() == kMostIntervals)
            throw Error(
                fmt::format("{}: more than {} intervals: use longer ones", path_, kMostIntervals));
        // Whatever its length, an interval counts for what it consists of.
        const double scale = instructions_ == 0 ? 0 : 1 / static_cast<double>(instructions_);
        for (double& sum : sum_) {
            intervals_.points.values.push_back(sum * scale);
            sum = 0;
        }
        intervals_.instructions.push_back(instructions_);
        instructions_ = 0;
    }

    Intervals take() { return std::move(intervals_); }

  private:
    // The block's row of the matrix, from -1 to 1: computed, because numbers of blocks can be
    // large.
    std::span<const double> row_of(std::uint32_t block) {
        constexpr std::uint32_t kRemembered = 1U << 20;
        if (block >= kRemembered) return make_row(block, row_);
        const std::size_t at = block * sum_.size();
        if (at >= rows_.size()) {
            rows_.resize(at + sum_.size());
            known_.resize(block + std::size_t{1});
        }
        const std::span<double> row(rows_.data() + at, sum_.size());
        if (known_[block]) return row;
        known_[block] = true;
        return make_row(block, row);
    }

    std::span<const double> make_row(std::uint32_t block, std::span<double> row) const {
        std::uint64_t state = seed_;
        state = splitmix64(state) ^ block;
        for (double& value : row) value = 2 * uniform(state) - 1;
        return row;
    }

    std::string path_;
    std::uint64_t seed_;
    Intervals intervals_;
    std::uint64_t instructions_ = 0;
    std::vector<double> sum_;
    std::vector<double> row_;   // of a block that is not remembered
    std::vector<double> rows_;  // by block
    std::vector<bool> known_;
};

}  // namespace

Intervals read_intervals(const std::string& path, std::size_t dimensions, std::uint64_t seed) {
    Projector projector(path, dimensions, seed);
    events::BlockVectorParser parser(
        path, {[&](std::uint32_t block, std::uint64_t count) { projector.add(block, count); },
               [&] { projector.end(); }});
    events::read_file(path, [&](std::string_view block) { parser.feed(block); });
    parser.finish();
    Intervals intervals = projector.take();
    if (intervals.instructions.empty())
        throw Error(path +
                    ": no intervals: the program ran for less than one; use a smaller "
                    "--interval-size with --plugin=bbv");
    return intervals;
}

}  // namespace assay::simpoint
