// A trace of assay record, for check-plugin --trace: what assay replay would show of it.
#pragma once

#include "framework/collector/trace/interval_reader.h"
#include "framework/collector/trace/segment.h"
#include "framework/collector/trace/shadow_stack.h"
#include "framework/collector/trace/trace_reader.h"
#include "framework/driver/replay/image_trace.h"
#include "tools/check_plugin/trial_trace.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::check {

// A trace file that can be replayed.
class TraceFile {
  public:
    // Replays all of it once. Throws Error if it cannot be read, is damaged, or has no process.
    explicit TraceFile(const std::string& path);

    const std::string& path() const { return file_.path(); }
    std::size_t images() const { return file_.images().size(); }
    replay::ImageTrace image(std::size_t number) const { return {file_, file_.images()[number]}; }

  private:
    const recording::TraceFileReader file_;
};

// One image, for one replay.
class RecordedTrace final : public TrialTrace {
  public:
    // `image` must live longer. Throws Error.
    explicit RecordedTrace(const replay::ImageTrace& image);

    using Take = std::function<void(const Buffer& buffer)>;
    // All that is `wanted`, in order, and `values` if there are values among that. `calls`: with
    // the contexts of records. Throws Error if the trace is damaged, or lacks what is wanted.
    void replay(const trace::Spec& wanted, const trace::ValueLists& values, bool calls,
                const Take& take);

    std::vector<trace_block_t> blocks() const override { return copy(reader_.code().blocks); }
    std::vector<trace_instr_t> instrs() const override { return copy(reader_.code().instrs); }
    std::vector<trace_site_t> sites() const override { return copy(reader_.code().sites); }
    std::vector<trace_context_t> contexts() const override {
        return copy(stacks_.contexts().table());
    }
    const collector::AddressMap& addresses() const override { return reader_.addresses(); }
    std::vector<std::uint64_t> counts(std::uint64_t) const override {
        return reader_.instruction_counts();
    }
    std::vector<std::uint64_t> mispredictions() const override { return reader_.mispredictions(); }
    std::span<const collector::Interval> rests() override;

  private:
    template <typename T>
    static std::vector<T> copy(std::span<const T> all) {
        return {all.begin(), all.end()};
    }
    void take(collector::TraceReader::Source source, std::span<const trace_record_t> records,
              std::span<const trace_marker_t> markers);
    void read(const std::function<bool()>& ended);

    const replay::ImageTrace& image_;
    collector::Segment segment_;
    collector::ShadowStacks stacks_;
    collector::IntervalReader intervals_;
    collector::TraceReader reader_;
    const std::unique_ptr<trace::Readers> readers_ = std::make_unique<trace::Readers>();
    bool calls_ = false;
    Take take_;
};

}  // namespace assay::check
