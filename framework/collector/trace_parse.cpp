// assay/trace_parse.h: the functions with which profilers read what was captured.
#include "assay/trace_parse.h"

#include "framework/collector/parser.h"

namespace {

template <typename T>
const T* contents(std::span<const T> table, size_t* count) {
    *count = table.size();
    return table.data();
}

}  // namespace

extern "C" {

uint32_t trace_parser_get_pid(const trace_parser_t* parser) {
    return parser->pid;
}

uint32_t trace_parser_get_thread(const trace_parser_t* parser) {
    return parser->thread;
}

int trace_parser_has_context(const trace_parser_t* parser) {
    return !parser->context_table.empty();
}

const uint32_t* trace_parser_contexts(const trace_parser_t* parser, size_t* count) {
    return contents(parser->contexts, count);
}

const trace_context_t* trace_parser_context_table(const trace_parser_t* parser, size_t* count) {
    return contents(parser->context_table, count);
}

const trace_marker_t* trace_parser_markers(const trace_parser_t* parser, size_t* count) {
    return contents(parser->markers, count);
}

// No driver captures value lists yet, so that a buffer has no such record (trace_spec.cpp
// refuses the specification): the end of the buffer is all there is.
int trace_parser_next(trace_parser_t*, uint32_t*, uint64_t*, uint64_t*, uint64_t*, int, uint64_t*) {
    return -1;
}

const trace_record_t* trace_parser_records(const trace_parser_t* parser, size_t* count) {
    return contents(parser->records, count);
}

const trace_site_t* trace_parser_sites(const trace_parser_t* parser, size_t* count) {
    return contents(parser->code.sites, count);
}

const trace_instr_t* trace_parser_instrs(const trace_parser_t* parser, size_t* count) {
    return contents(parser->code.instrs, count);
}

const trace_block_t* trace_parser_blocks(const trace_parser_t* parser, size_t* count) {
    return contents(parser->code.blocks, count);
}

uint64_t trace_parser_count(const trace_parser_t* parser, uint32_t instr) {
    return instr < parser->counts.size() ? parser->counts[instr] : 0;
}

const trace_interval_t* trace_parser_next_interval(trace_parser_t* parser) {
    if (parser->next_interval == parser->intervals.size()) return nullptr;
    return &parser->intervals[parser->next_interval++].row;
}

const trace_object_t* trace_parser_object(const trace_parser_t* parser, uint64_t pc) {
    return parser->addresses->object(pc);
}

const trace_frame_t* trace_parser_frames(const trace_parser_t* parser, uint64_t pc, size_t* count) {
    return contents(parser->places->find(pc), count);
}

void trace_parser_prepare_frames(const trace_parser_t* parser, const uint64_t* pcs, size_t count) {
    parser->places->prepare({pcs, count});
}

}  // extern "C"
