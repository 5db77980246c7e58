// assay/profiler.hpp - profilers in C++20, on top of the C interface of assay/vprofiler.h.
//
//     class Splits final : public assay::Profiler {
//       public:
//         static constexpr const char* kName = "splits";
//         static constexpr vp_event_t kEvents[] = {{"Splits", "references of two lines",
//         "references"}}; void capture(assay::Captures& wanted) override { wanted.references(); }
//         void process(assay::Trace& trace, assay::Samples& samples) override { ... }
//     };
//     extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch = assay::dispatch<Splits>();
//
// An object of the class lives from vp_init to vp_release: one run of one program. Its functions
// are called on one thread, in the order in which they stand in Profiler below: option() for each
// option, check_options(), capture(), process() for each buffer, finish(), finish_more(),
// summary(). What one of them throws becomes the reason that assay gives for having lost the
// profiler, or, of option() and check_options(), for not starting the run; nothing leaves the
// library as an exception.
//
// Everything that a Trace gives is assay's, and valid during the call that it was passed to, unless
// stated otherwise; all that is returned or passed to assay is copied or kept by this header. No
// function here may be called from a thread that the profiler starts by itself.
//
// Addresses are virtual ones of the profiled process, sizes are bytes, and counts are of
// executions, unless stated otherwise.
//
// Nothing here is part of the binary interface: two profilers built with different versions of this
// header work in one run, also where their classes have the same name. With -fvisibility=hidden
// that is true of static members of the class, too. The C functions can be used beside it.
#ifndef ASSAY_PROFILER_HPP
#define ASSAY_PROFILER_HPP

#include <assay/vprofiler.h>
#include <assay/series.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace assay {

// An option whose value is unusable, thrown from Profiler::option: "--name=value: why".
class BadOption final : public std::invalid_argument {
  public:
    BadOption(std::string_view name, std::string_view value, std::string_view why)
        : std::invalid_argument("--" + std::string(name) + "=" + std::string(value) + ": " +
                                std::string(why)) {}
};

// The value of an option that is to be a decimal number from `least` to `most`; throws BadOption if
// it is none.
inline std::uint64_t number(std::string_view name, std::string_view value, std::uint64_t least,
                            std::uint64_t most) {
    std::uint64_t found = 0;
    const char* const end = value.data() + value.size();
    const auto [stopped, error] = std::from_chars(value.data(), end, found);
    if (error != std::errc{} || stopped != end || found < least || found > most)
        throw BadOption(name, value,
                        "use " + std::to_string(least) + " to " + std::to_string(most));
    return found;
}

// What to capture: trace_vlist.h says what each means, and what it costs. To be used in
// Profiler::capture only.
class Captures {
  public:
    // `spec` stays its owner's.
    explicit Captures(trace_vlist_table_t* spec) : spec_(spec) {}

    // How often each instruction is executed, for Trace::count.
    void block_counts() { trace_capture_block_counts(spec_); }
    // Every reference; or those that a filter leaves, which loses nothing to a cache with that line
    // size, at least so many sets (0: no filter), and LRU replacement.
    void references(std::uint32_t filter_line = 64, std::uint32_t filter_sets = 0) {
        trace_capture_references(spec_, filter_line, filter_sets);
    }
    // The same, and the first write to a line that has become the most recent of its set.
    void first_writes(std::uint32_t filter_line, std::uint32_t filter_sets) {
        trace_capture_first_writes(spec_, filter_line, filter_sets);
    }
    // The same, with the bytes that the others touched, for Trace::footprints.
    void footprints(std::uint32_t filter_line, std::uint32_t filter_sets) {
        trace_capture_footprints(spec_, filter_line, filter_sets);
    }
    // Every reference but those that continue a run of their operand, whose number `aux` is.
    void runs() { trace_capture_runs(spec_); }
    // Instruction fetches, by line, in order with references to data; with 0 sets each one.
    void fetches(std::uint32_t filter_line, std::uint32_t filter_sets) {
        trace_capture_fetches(spec_, filter_line, filter_sets);
    }
    // What of either misses a cache of each thread, if that is possible (Trace::misses); nullptr:
    // not that.
    void misses(const trace_cache_t* fetch, const trace_cache_t* data) {
        trace_capture_misses(spec_, fetch, data);
    }
    // Fetches as references in order with those to data, and through their filter.
    void code(std::uint32_t line) { trace_capture_code(spec_, line); }
    // Calls and returns as records, and the context of each record, for Trace::contexts.
    void calls() { trace_capture_calls(spec_); }
    // Which blocks each `instructions` instructions of a thread belong to, for
    // Trace::next_interval.
    void intervals(std::uint64_t instructions) { trace_capture_intervals(spec_, instructions); }
    // With --sample: before each burst so many instructions, in buffers of which Trace::is_warm_up
    // is true.
    void warm_up(std::uint64_t instructions) { trace_capture_warm_up(spec_, instructions); }
    // The iterations of repeated string instructions, where references are not captured.
    void repeats() { trace_capture_repeats(spec_); }
    // Each execution of branches of these kinds, TRACE_CONDITIONAL_BRANCHES and those behind it.
    void branches(std::uint32_t which) { trace_capture_branches(spec_, which); }
    // System calls and their results; TRACE_SYSTEM_CALL_TIMES: how long they took, too.
    void system_calls(std::uint32_t which = 0) { trace_capture_system_calls(spec_, which); }
    // How large pages can be, as markers: TRACE_MARKER_PAGES_4K and those behind it.
    void mappings() { trace_capture_mappings(spec_); }
    // Each execution of a basic block, before what its instructions do: TRACE_SITE_BLOCK.
    void blocks() { trace_capture_blocks(spec_); }
    // Counts of mispredictions, for Trace::mispredictions. The sizes are Cachegrind's.
    void predictions(std::uint32_t history_bits = 7, std::uint32_t address_bits = 7,
                     std::uint32_t target_bits = 9) {
        trace_capture_predictions(spec_, history_bits, address_bits, target_bits);
    }

    // The values of each execution of some instructions, for Trace::next, at most TRACE_VLIST_MAX:
    // of those for which `selector` returns non-zero, or of those with the opcode `opcode`
    // (TRACE_OPCODE). Several calls add to one another, each instruction's lists one behind the
    // other.
    void values(std::initializer_list<trace_value_t> wanted, trace_selector_t selector) {
        added(trace_add_vlist_by_select(spec_, selector, list_of(wanted).get()));
    }
    void values(std::initializer_list<trace_value_t> wanted, std::uint16_t opcode) {
        added(trace_add_vlist_by_opc(spec_, opcode, list_of(wanted).get()));
    }
    // The one value that `pick` returns for an opcode, none for TRACE_NONE. It takes the place of
    // all lists before.
    void value(trace_pick_value_t pick) {
        if (trace_set_vlist_by_pick_value(spec_, pick) != 0)
            throw std::invalid_argument("a value that assay does not know");
    }

    // For functions of trace_vlist.h; not to be freed.
    trace_vlist_table_t* get() const { return spec_; }

  private:
    struct Free {
        void operator()(trace_vlist_t* list) const { std::free(list); }
    };
    static std::unique_ptr<trace_vlist_t, Free> list_of(
        std::initializer_list<trace_value_t> wanted) {
        std::unique_ptr<trace_vlist_t, Free> list(trace_vlist_alloc());
        for (const trace_value_t value : wanted)
            if (trace_add_value_to_vlist(list.get(), value) != 0)
                throw std::invalid_argument("too many values, or one that assay does not know");
        return list;
    }
    static void added(int status) {
        if (status != 0)
            throw std::invalid_argument(
                "too many values of one instruction, or an opcode that assay does not know");
    }

    trace_vlist_table_t* spec_;
};

// One execution of an instruction with values.
struct Execution {
    std::uint32_t instr;  // index in Trace::instrs
    std::uint64_t pc;
    std::uint64_t context;
    std::array<std::uint64_t, TRACE_VLIST_MAX> values;  // in the order of the list
    int count;                                          // of values
};

// An interval of a thread, with Captures::intervals.
struct Interval {
    std::uint32_t thread;
    bool complete;               // false: what the thread has executed since its last complete one
    std::uint64_t instructions;  // the sum over `blocks`
    std::span<const trace_interval_block_t> blocks;  // by their index in Trace::blocks, each once
};

// What has been captured: trace_parse.h.
class Trace {
  public:
    // `parser` stays its owner's.
    explicit Trace(trace_parser_t* parser) : parser_(parser) {}

    // The profiled process.
    std::uint32_t pid() const { return trace_parser_get_pid(parser_); }
    // The thread whose buffer this is, counted from 0 in order of creation; a program that damages
    // its trace can make it any number. 0 in finish().
    std::uint32_t thread() const { return trace_parser_get_thread(parser_); }
    // Whether records have a context: with Captures::calls, and for all profilers with --contexts.
    bool has_context() const { return trace_parser_has_context(parser_) != 0; }

    // The buffer. None in finish().
    std::span<const trace_record_t> records() const { return table(trace_parser_records); }
    // By record; empty without calls.
    std::span<const std::uint32_t> contexts() const { return table(trace_parser_contexts); }
    // With --objects, what a reference in that context is of; else null.
    const trace_data_object_t* data_object(std::uint32_t context) const {
        return trace_parser_data_object(parser_, context);
    }
    // In finish(), with --objects: what lies at an address, or lay there last, and how far the
    // address is from its beginning; else null.
    const trace_data_object_t* data_object_at(std::uint64_t address, std::uint64_t& offset) const {
        return trace_parser_data_object_at(parser_, address, &offset);
    }
    // What the references of a site are to: the number of a type or member, else 0; and how far
    // from the beginning of an object of the outermost type each begins, UINT64_MAX where that
    // differs.
    std::uint32_t type_of_site(std::uint32_t site, std::uint64_t& offset) const {
        return trace_parser_type_of_site(parser_, site, &offset);
    }
    // With a number of the former, or of a row; null for 0.
    const trace_data_type_t* data_type(std::uint32_t number) const {
        return trace_parser_data_type(parser_, number);
    }
    // The next execution with values; none at the end of the buffer.
    std::optional<Execution> next() {
        Execution found{};
        found.count = trace_parser_next(parser_, &found.instr, &found.pc, &found.context, nullptr,
                                        TRACE_VLIST_MAX, found.values.data());
        if (found.count < 0) return std::nullopt;
        return found;
    }
    // Whether the execution that next() found last has the value with this index of the list. Else
    // it is 0.
    bool has_value(std::uint32_t index) const {
        return trace_parser_has_value(parser_, index) != 0;
    }
    // The bytes of that value, the lowest first, in `room`: up to 64 of one that was asked for with
    // TRACE_WIDE, else at most 8; none if the execution does not have it.
    std::span<const std::uint8_t> value_bytes(std::uint32_t index,
                                              std::span<std::uint8_t, 64> room) const {
        return room.first(trace_parser_value_bytes(parser_, index, room.data(), 64));
    }
    // What is left of them at the buffer's end, by set; empty without a filter.
    std::span<const std::uint64_t> footprints() const { return table(trace_parser_footprints); }
    // What the thread said with assay/client.h, among its records.
    std::span<const trace_marker_t> markers() const { return table(trace_parser_markers); }
    // The last marker, if it says that the thread ends with this buffer: what is kept of it can go.
    // Else null, also for threads that are there when the program ends.
    const trace_marker_t* thread_end() const {
        const auto said = markers();
        const bool ends = !said.empty() && said.back().operation == TRACE_MARKER_THREAD_END;
        return ends ? &said.back() : nullptr;
    }
    // The next interval that ends in the buffer; in finish(), the unfinished one of each thread.
    // None at the end of them.
    std::optional<Interval> next_interval() {
        const trace_interval_t* const found = trace_parser_next_interval(parser_);
        if (found == nullptr) return std::nullopt;
        return Interval{found->thread, found->complete != 0, found->instructions,
                        std::span(found->blocks, found->block_count)};
    }

    // Everything that has been translated so far. An index stays valid for the run.
    std::span<const trace_site_t> sites() const { return table(trace_parser_sites); }
    std::span<const trace_instr_t> instrs() const { return table(trace_parser_instrs); }
    std::span<const trace_block_t> blocks() const { return table(trace_parser_blocks); }
    std::span<const trace_context_t> context_table() const {
        return table(trace_parser_context_table);
    }
    // Executions of an instruction, by its index; in finish() and totals(), with block counts.
    std::uint64_t count(std::uint32_t instr) const { return trace_parser_count(parser_, instr); }
    // Mispredictions of a branch, by its index in instrs(); in finish() and totals(), with
    // predictions.
    std::uint64_t mispredictions(std::uint32_t instr) const {
        return trace_parser_mispredictions(parser_, instr);
    }
    // What a store writes in each access, of which a value has the low 8 bytes at most, or 64 with
    // TRACE_WIDE.
    std::uint32_t stored_bytes(std::uint32_t instr) const {
        return trace_parser_stored_bytes(parser_, instr);
    }
    // What an instruction is, by its index in instrs(): mnemonic, instruction set, vectors, bytes
    // moved. Null if there is none. Valid until the next call.
    const trace_instr_facts_t* facts(std::uint32_t instr) const {
        return trace_parser_instr_facts(parser_, instr);
    }
    // TRACE_FETCH_MISSES, TRACE_DATA_MISSES: which records are only what misses the caches that
    // Captures::misses asked for.
    std::uint32_t misses() const { return trace_parser_misses(parser_); }
    // With --sample: whether nothing in this buffer is to be counted; and, in finish(), what counts
    // are multiplied by.
    bool is_warm_up() const { return trace_parser_is_warm_up(parser_) != 0; }
    double scale() const { return trace_parser_scale(parser_); }
    // The ELF file that is mapped there now, in the profiled process, or null.
    const trace_object_t* object(std::uint64_t pc) const {
        return trace_parser_object(parser_, pc);
    }

    // Where an instruction comes from in the source, for reports: at least one place, the innermost
    // inlined function first. Valid until the end of finish().
    std::span<const trace_frame_t> frames(std::uint64_t pc) const {
        std::size_t count = 0;
        const trace_frame_t* const first = trace_parser_frames(parser_, pc, &count);
        return {first, count};
    }
    // Before frames() of many instructions: reads debug information once for all.
    void prepare_frames(std::span<const std::uint64_t> pcs) const {
        trace_parser_prepare_frames(parser_, pcs.data(), pcs.size());
    }

    // For functions of trace_parse.h.
    trace_parser_t* get() const { return parser_; }

  private:
    template <typename Row>
    std::span<const Row> table(const Row* (*function)(const trace_parser_t*, std::size_t*)) const {
        std::size_t count = 0;
        const Row* const rows = function(parser_, &count);
        return {rows, count};
    }

    trace_parser_t* parser_;
};

// What a call returns; empty when the call begins. Few large batches, such as all at the end, are
// faster than one per record. Nothing that was not seen, with a weight of 0, is kept, but by add().
class Samples {
  public:
    // Adds `weight` to the column of event `event`: in that context, if calls are captured, and in
    // that part of the profile (Profiler::part) instead of the whole.
    void count(std::uint64_t pc, std::uint32_t event, std::uint64_t weight = 1,
               std::uint64_t context = 0, std::uint64_t part = 0) {
        if (weight != 0) all_.push_back({pc, context, part, 0, event, 0, weight});
    }
    // A value that was seen `times` times, for the list with that index.
    void value(std::uint64_t pc, std::uint64_t value, std::uint64_t times = 1,
               std::uint32_t list = 0) {
        if (times != 0) all_.push_back({pc, 0, 0, value, VP_VALUE_OF(list), 0, times});
    }
    // Values that are not known any more, none of them more than `most` times.
    void rest(std::uint64_t pc, std::uint64_t most, std::uint64_t times, std::uint32_t list = 0) {
        if (times != 0) all_.push_back({pc, 0, 0, most, VP_VALUE_REST(list), 0, times});
    }
    // As it is.
    void add(const vsample_t& sample) { all_.push_back(sample); }

    std::size_t size() const { return all_.size(); }
    const vsample_t* data() const { return all_.data(); }
    void clear() { all_.clear(); }

  private:
    std::vector<vsample_t> all_;
};

// Something for each site or instruction, by its index: begins as T{}, grows as it is used.
template <typename T>
class Indexed {
  public:
    T& operator[](std::size_t index) {
        if (index >= all_.size()) all_.resize(index + index / 2 + 64);
        return all_[index];
    }
    std::size_t size() const { return all_.size(); }

  private:
    std::vector<T> all_;
};

// The base of profilers. A class defines, of these, what it needs; the tables can be std::arrays or
// references to either, too:
//     static constexpr const char* kName            required; as vp_name
//     static constexpr const char* kDescription     one sentence
//     static constexpr vp_event_t kEvents[]         its columns
//     static constexpr vp_derived_t kDerived[]      figures over their totals
//     static constexpr vp_option_t kOptions[]
//     static constexpr bool kPrintsValues = true    it has preface() and format()
//     static constexpr const char* kValueLists[]    names of the lists of values, if there are
//     several
//     void totals(assay::Trace&, std::span<std::uint64_t> by_event)
//     std::span<const vp_event_t> events() const    in place of kEvents, and the same for
//     derived(): they may depend on options, and what they return lives as long as the object
// totals() is vp_totals: behind bursts of a sampled run, it stores what all samples of each event
// would add up to if the program ended now; the elements are 0 before. Without it there is no error
// of what finish() returns.
class Profiler {
  public:
    Profiler() = default;
    virtual ~Profiler() = default;
    Profiler(const Profiler&) = delete;
    Profiler& operator=(const Profiler&) = delete;

    // For each option that the user gave, in that order, and for files with a default. The value
    // fits the option's type.
    virtual void option(std::string_view, const std::string&) {}
    // After the last option, also where there are none: for what depends on several.
    virtual void check_options() {}
    // Before the program starts. Tools call it without a program: create no files yet.
    virtual void capture(Captures& wanted) = 0;
    // For each buffer of a thread; those of one thread arrive in order.
    virtual void process(Trace&, Samples&) {}
    // Once, after the program's end.
    virtual void finish(Trace&, Samples&) {}
    // Then again and again until it returns false, for samples in portions of, say, some thousand:
    // of large programs, all at once would need much memory. What has been added when it returns
    // false is taken, too.
    virtual bool finish_more(Trace&, Samples&) { return false; }
    // After that, for people; `totals` by event. Lines end in newlines.
    virtual std::string summary(std::span<const std::uint64_t>) { return {}; }

    // In tools: what stands before the values of an instruction in the list with that index
    // (nothing: they are left out), and one of its values.
    virtual std::optional<std::string> preface(const trace_instr_t&, std::uint32_t) {
        return "values";
    }
    virtual std::string format(const trace_instr_t&, std::uint64_t value) {
        return std::to_string(value);
    }

  protected:
    // A remark for the user: one line.
    void warn(const std::string& text) const { host_->warning(host_, text.c_str()); }
    // A line of the header of the events file, "name: text". From capture() on.
    void describe(const std::string& name, const std::string& text) const {
        host_->describe(host_, name.c_str(), text.c_str());
    }
    // The number of a part of the profile, for Samples::count: an events file of its own beside the
    // profile's, with `name` appended to its name. 0 if there are too many. From capture() on.
    std::uint32_t part(const std::string& name) const { return host_->part(host_, name.c_str()); }
    // The event is not counted with these options: its column is left out. In option() or
    // capture().
    void leave_out(std::uint32_t event) const { host_->leave_out(host_, event); }
    // With --sample, the event's counts do not grow with the number of instructions. Likewise.
    void unscaled(std::uint32_t event) const { host_->unscaled(host_, event); }
    // With --sample, why the error of the event's estimate does not follow from how bursts differ.
    void no_error(std::uint32_t event, const std::string& why) const {
        host_->no_error(host_, event, why.c_str());
    }
    // Adds a series to the events file, for tools to plot. False if there are too many, or this
    // assay is older than series. From capture() to the end of finish_more().
    bool series(const Series& series) const {
        if (host_->size < offsetof(vp_host_t, series) + sizeof host_->series) return false;
        return series.give([&](const vp_series_t* given) { return host_->series(host_, given); }) !=
               0;
    }
    // Call this before you load a library that the user names. False: do not load it, and throw;
    // assay calls the profiler again in a process that it has to itself. In check_options().
    bool may_load(const std::string& path) const {
        if (host_->size < offsetof(vp_host_t, library) + sizeof host_->library) return true;
        return host_->library(host_, path.c_str()) != 0;
    }
    // Whether bursts are profiled, as an estimate of the whole run: --sample.
    bool is_sampled() const { return host_->samples != 0; }
    // The profiled command line; "" in the tools.
    std::string_view command() const { return host_->command; }
    // For what is above, as it is in C. None of these in the class's constructor.
    const vp_host_t& host() const { return *host_; }

  private:
    template <typename Class>
    friend class Binding;

    const vp_host_t* host_ = nullptr;
    Samples samples_;
    bool finished_ = false;
    bool has_more_ = true;
    std::string text_;  // that was returned last
};

// Static members of a template are one in all libraries of a process, unless they are hidden.
#ifdef __GNUC__
#define ASSAY_HIDDEN __attribute__((visibility("hidden")))
#else
#define ASSAY_HIDDEN
#endif

// The functions of the C interface for a class.
template <typename Class>
class ASSAY_HIDDEN Binding {
  public:
    static constexpr vp_dispatch_t table() {
        vp_dispatch_t table{};
        table.size = sizeof table;
        table.abi_version = VP_ABI_VERSION;
        table.vp_name = [] { return Class::kName; };
        if constexpr (requires { Class::kDescription; })
            table.vp_description = [] { return Class::kDescription; };
        table.vp_init = init;
        table.vp_release = release;
        if constexpr (requires(const Class& c) { c.events(); })
            table.vp_events = [](uint32_t* count) {
                if constexpr (requires { Class::kEvents; })
                    if (!profiler) return rows<Class::kEvents>(count);
                return own_rows(*count, own().events());
            };
        else if constexpr (requires { Class::kEvents; })
            table.vp_events = rows<Class::kEvents>;
        if constexpr (requires(const Class& c) { c.derived(); })
            table.vp_derived = [](uint32_t* count) {
                if constexpr (requires { Class::kDerived; })
                    if (!profiler) return rows<Class::kDerived>(count);
                return own_rows(*count, own().derived());
            };
        else if constexpr (requires { Class::kDerived; })
            table.vp_derived = rows<Class::kDerived>;
        if constexpr (requires { Class::kOptions; }) table.vp_option_table = rows<Class::kOptions>;
        table.vp_options = options;
        table.vp_prof_init = prof_init;
        table.vp_prof_release = prof_release;
        table.vp_prof_process = process;
        table.vp_finish = finish;
        table.vp_summary = summary;
        constexpr bool kHasLists = requires {
            Class::kValueLists;
        };
        if constexpr (requires { Class::kPrintsValues; }) {
            if constexpr (!kHasLists)
                table.vp_preface = [](const trace_instr_t* instr) { return preface(instr, 0); };
            table.vp_list_preface = preface;
            table.vp_format = format;
        }
        if constexpr (kHasLists) table.vp_value_lists = rows<Class::kValueLists>;
        if constexpr (requires { &Class::totals; }) table.vp_totals = totals;
        return table;
    }

  private:
    static inline std::unique_ptr<Profiler> profiler;
    static inline const vp_host_t* host = nullptr;
    static inline trace_vlist_table_t* spec = nullptr;

    // A copy, because a static member of the class need not be hidden.
    template <const auto& kRows>
    static const auto* rows(uint32_t* count) {
        static constexpr auto kOwn = [] {
            if constexpr (std::is_array_v<std::remove_cvref_t<decltype(kRows)>>)
                return std::to_array(kRows);
            else
                return kRows;
        }();
        *count = static_cast<uint32_t>(kOwn.size());
        return kOwn.data();
    }

    static const Class& own() { return static_cast<const Class&>(*profiler); }
    template <typename Row>
    static const Row* own_rows(uint32_t& count, std::span<const Row> rows) {
        count = static_cast<uint32_t>(rows.size());
        return rows.data();
    }

    // What `function` returns, or `failed` after host->error if it throws.
    template <typename Result, typename Function>
    static Result caught(Result failed, const Function& function) {
        try {
            return function();
        } catch (const std::exception& error) {
            host->error(host, error.what());
        } catch (...) {
            host->error(host, "an exception without a text");
        }
        return failed;
    }

    static int init(const vp_host_t* given) {
        host = given;
        return caught(-1, [] {
            profiler = std::make_unique<Class>();
            profiler->host_ = host;
            return 0;
        });
    }
    static void release() { profiler.reset(); }

    static int options(const vp_setting_t* settings, uint32_t count) {
        return caught(-1, [&] {
            for (const vp_setting_t& setting : std::span(settings, count))
                profiler->option(setting.name, setting.value);
            profiler->check_options();
            return 0;
        });
    }

    static trace_vlist_table_t* prof_init() {
        return caught<trace_vlist_table_t*>(nullptr, [] {
            spec = trace_vlist_table_alloc();
            Captures wanted(spec);
            profiler->capture(wanted);
            return spec;
        });
    }
    static void prof_release() {
        std::free(spec);
        spec = nullptr;
    }

    static int totals(uint32_t, trace_parser_t* parser, uint64_t* by_event, uint32_t count) {
        return caught(-1, [&] {
            Trace trace(parser);
            std::fill_n(by_event, count, 0);
            static_cast<Class&>(*profiler).totals(trace, std::span(by_event, count));
            return 0;
        });
    }

    static int returned(const vsample_t** samples) {
        *samples = profiler->samples_.data();
        return static_cast<int>(profiler->samples_.size());
    }
    static int process(uint32_t, trace_parser_t* parser, const vsample_t** samples) {
        return caught(-1, [&] {
            Trace trace(parser);
            profiler->samples_.clear();
            profiler->process(trace, profiler->samples_);
            return returned(samples);
        });
    }
    static int finish(uint32_t, trace_parser_t* parser, const vsample_t** samples) {
        return caught(-1, [&] {
            Trace trace(parser);
            Samples& given = profiler->samples_;
            given.clear();
            if (!std::exchange(profiler->finished_, true)) profiler->finish(trace, given);
            // To assay, no samples are the end.
            while (given.size() == 0 && profiler->has_more_)
                profiler->has_more_ = profiler->finish_more(trace, given);
            return returned(samples);
        });
    }

    static const char* keep(std::string text) {
        profiler->text_ = std::move(text);
        return profiler->text_.c_str();
    }
    static const char* summary(const uint64_t* totals, uint32_t count) {
        return caught<const char*>(nullptr, [&] {
            return keep(profiler->summary({totals, count}));
        });
    }
    static const char* preface(const trace_instr_t* instr, uint32_t list) {
        return caught<const char*>(nullptr, [&]() -> const char* {
            const std::optional<std::string> text = profiler->preface(*instr, list);
            return text ? keep(*text) : nullptr;
        });
    }
    static const char* format(const trace_instr_t* instr, uint64_t value) {
        return caught<const char*>("?", [&] { return keep(profiler->format(*instr, value)); });
    }
};

// The table of a profiler, to be exported as assay_vp_dispatch.
template <std::derived_from<Profiler> Class>
constexpr vp_dispatch_t dispatch() {
    return Binding<Class>::table();
}

#undef ASSAY_HIDDEN

}  // namespace assay

#endif
