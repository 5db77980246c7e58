#include "tools/trace/listing.h"

#include "tools/trace/champsim.h"
#include "tools/trace/walk.h"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

namespace assay::tracing {
namespace {

class Writer {
  public:
    Writer(const replay::ImageTrace& image, Sink& sink) : image_(image), sink_(sink) {}
    virtual ~Writer() = default;
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    virtual void begin() {}
    virtual void write(const Executed& executed) = 0;

  protected:
    template <typename... Args>
    void line(fmt::format_string<Args...> format, Args&&... args) {
        line_.clear();
        fmt::format_to(std::back_inserter(line_), format, std::forward<Args>(args)...);
        sink_.write(line_);
    }
    const replay::ImageTrace& image_;
    Sink& sink_;

  private:
    std::string line_;
};

// Dinero's format: a label and an address on each line.
class Din : public Writer {
  public:
    using Writer::Writer;
    void write(const Executed& executed) override {
        line("2 {:x}\n", image_.instrs()[executed.instr].pc);
        for (const Reference& reference : executed.references) {
            if (reference.kind != TRACE_SITE_WRITE) line("0 {:x}\n", reference.address);
            if (reference.kind != TRACE_SITE_READ) line("1 {:x}\n", reference.address);
        }
    }
};

// The format of Valgrind's lackey with --trace-mem=yes.
class Lackey : public Writer {
  public:
    using Writer::Writer;
    void write(const Executed& executed) override {
        const trace_instr_t& instr = image_.instrs()[executed.instr];
        line("I  {:08x},{}\n", instr.pc, instr.length);
        for (const Reference& reference : executed.references)
            line(" {} {:08x},{}\n",
                 reference.kind == TRACE_SITE_READ    ? 'L'
                 : reference.kind == TRACE_SITE_WRITE ? 'S'
                                                      : 'M',
                 reference.address, reference.bytes);
    }
};

class Memref : public Writer {
  public:
    using Writer::Writer;
    void begin() override { sink_.write("thread,pc,kind,address,bytes\n"); }
    void write(const Executed& executed) override {
        for (const Reference& reference : executed.references)
            line("{},{:#x},{},{:#x},{}\n", executed.thread + 1, image_.instrs()[executed.instr].pc,
                 kind_name(reference.kind), reference.address, reference.bytes);
    }
};

// Each iteration of a repeated string instruction is a record, as in Pin. Other instructions with
// more references than fit into a record also become several records.
class Champsim : public Writer {
  public:
    Champsim(const replay::ImageTrace& image, Sink& sink)
        : Writer(image, sink), forms_(image.instrs().size()) {}

    void write(const Executed& executed) override {
        const trace_instr_t& instr = image_.instrs()[executed.instr];
        std::optional<ChampsimForm>& form = forms_[executed.instr];
        if (!form) form = champsim_form(instr);
        record_ = form->record;
        const bool goes_on = !executed.next || *executed.next == instr.pc + instr.length;
        if (record_.is_branch) record_.branch_taken = !form->is_conditional || !goes_on ? 1 : 0;
        const std::size_t in_iteration = std::max(form->memory_operands, 1U);
        const bool repeated = instr.flags & TRACE_INSTR_REPEATED;
        sources_ = destinations_ = 0;
        for (std::size_t i = 0; i < executed.references.size(); ++i) {
            const Reference& reference = executed.references[i];
            const bool reads = reference.kind != TRACE_SITE_WRITE;
            const bool writes = reference.kind != TRACE_SITE_READ;
            const bool full = (reads && sources_ == ChampsimRecord::kSources) ||
                              (writes && destinations_ == ChampsimRecord::kDestinations);
            if (full || (repeated && i != 0 && i % in_iteration == 0)) put();
            if (reads) record_.source_memory[sources_++] = reference.address;
            if (writes) record_.destination_memory[destinations_++] = reference.address;
        }
        put();
    }

  private:
    void put() {
        sink_.write({reinterpret_cast<const char*>(&record_), sizeof record_});
        std::fill(std::begin(record_.source_memory), std::end(record_.source_memory), 0);
        std::fill(std::begin(record_.destination_memory), std::end(record_.destination_memory), 0);
        sources_ = destinations_ = 0;
    }

    std::vector<std::optional<ChampsimForm>> forms_;  // by instruction
    ChampsimRecord record_{};
    std::size_t sources_ = 0, destinations_ = 0;
};

std::unique_ptr<Writer> writer_of(Format format, const replay::ImageTrace& image, Sink& sink) {
    switch (format) {
        case Format::kChampsim:
            return std::make_unique<Champsim>(image, sink);
        case Format::kDin:
            return std::make_unique<Din>(image, sink);
        case Format::kLackey:
            return std::make_unique<Lackey>(image, sink);
        default:
            return std::make_unique<Memref>(image, sink);
    }
}

}  // namespace

std::string export_image(Format format, const replay::ImageTrace& image, const Region& region,
                         Sink& sink) {
    const std::unique_ptr<Writer> writer = writer_of(format, image, sink);
    writer->begin();
    Walk walk(image, region);
    ExecutedInstructions executed(image, region,
                                  [&](const Executed& each) { writer->write(each); });
    for (Event event; walk.next(event);)
        if (!region.thread || event.thread == *region.thread) executed.take(event);
    executed.finish();
    return walk.problem();
}

}  // namespace assay::tracing
