// What assay trace --check finds in traces that were changed on purpose.
#include "framework/driver/replay/parallel_parts.h"
#include "framework/recording/record_coding.h"
#include "framework/recording/trace_file_writer.h"
#include "tests/unit/temporary_folder.h"
#include "tools/trace/check.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace trace_check_test {

using namespace assay;

namespace {

// A recording of one thread.
struct Content {
    trace_image_t image;
    std::vector<trace_block_t> blocks;
    std::vector<trace_instr_t> instrs;
    std::vector<trace_site_t> sites;
    std::vector<std::byte> events;
    std::vector<trace_record_t> records;
    std::uint64_t instructions, events_before;
    trace_image_end_t end;

    unsigned kind(std::size_t record) const { return sites[records[record].site].kind; }
    // The first record of a kind after record `from`.
    std::size_t find(unsigned wanted, std::size_t from = 0) const {
        while (kind(from) != wanted) ++from;
        return from;
    }
    // The first read by an instruction that makes only this reference.
    std::size_t find_read() const {
        std::size_t at = find(TRACE_SITE_READ);
        while (instrs[sites[records[at].site].instr].flags &
               (TRACE_INSTR_VARIABLE | TRACE_INSTR_STORE))
            at = find(TRACE_SITE_READ, at + 1);
        return at;
    }
    // Appends a site of the instruction of record `at`, and returns its number.
    std::uint32_t add_site(std::size_t at, unsigned of_kind) {
        sites.push_back({sites[records[at].site].instr, 0, static_cast<std::uint8_t>(of_kind), 0});
        return static_cast<std::uint32_t>(sites.size() - 1);
    }
    void insert(std::size_t at, std::uint64_t value, std::uint32_t site, std::uint32_t aux = 0) {
        records.insert(records.begin() + static_cast<std::ptrdiff_t>(at), {value, site, aux});
    }
    void erase(std::size_t at) { records.erase(records.begin() + static_cast<std::ptrdiff_t>(at)); }
};

Content recorded() {
    const recording::TraceFileReader file(std::string(std::getenv("ASSAY_TEST_DATA")) +
                                          "/../../golden/callers.trace");
    const replay::ImageTrace image(file, file.images().front());
    Content content{.image = image.image(),
                    .blocks = image.blocks(),
                    .instrs = image.instrs(),
                    .sites = image.sites(),
                    .events = image.events(),
                    .records = {},
                    .instructions = image.instructions(),
                    .events_before = image.events().size(),
                    .end = *image.end()};
    replay::PartSequence parts(image);
    for (replay::PartSequence::Part part; parts.next(part);)
        content.records.insert(content.records.end(), part.records.begin(), part.records.end());
    return content;
}

template <typename Row>
void append(std::vector<std::byte>& to, const std::vector<Row>& rows) {
    const auto bytes = std::as_bytes(std::span(rows));
    to.insert(to.end(), bytes.begin(), bytes.end());
}

void write(const std::string& path, const Content& content) {
    recording::TraceFileWriter file(path);
    const auto put = [&](trace_chunk_t header, std::span<const std::byte> bytes) {
        header.pid = 7;
        header.image = 1;
        file.append(header, bytes);
    };
    put({.kind = TRACE_CHUNK_IMAGE}, std::as_bytes(std::span(&content.image, 1)));
    std::vector<std::byte> code;
    append(code, std::vector{trace_code_t{0, static_cast<std::uint32_t>(content.blocks.size()), 0,
                                          static_cast<std::uint32_t>(content.instrs.size()), 0,
                                          static_cast<std::uint32_t>(content.sites.size())}});
    append(code, content.blocks);
    append(code, content.instrs);
    append(code, content.sites);
    put({.kind = TRACE_CHUNK_CODE}, code);
    put({.kind = TRACE_CHUNK_EVENTS}, content.events);
    recording::RecordEncoder encoder;
    encoder.begin_part(0, content.records.size(), content.events_before, {});
    encoder.add(content.records, content.sites);
    const std::uint64_t records = encoder.records();
    put({.kind = TRACE_CHUNK_RECORDS, .instructions = content.instructions, .records = records},
        encoder.take());
    trace_image_end_t end = content.end;
    end.parts = 1;
    put({.kind = TRACE_CHUNK_END}, std::as_bytes(std::span(&end, 1)));
}

struct Found {
    std::vector<std::string> lines;
    tracing::Checked checked;

    // True if there is one violation, with all these words.
    bool is(std::initializer_list<std::string_view> words) const {
        return lines.size() == 1 && std::all_of(words.begin(), words.end(), [&](auto word) {
                   return lines.front().find(word) != std::string::npos;
               });
    }
};

Found check(const Content& content) {
    const TemporaryFolder folder;
    tracing::Options options;
    options.file = folder.file("trace");
    write(options.file, content);
    const recording::TraceFileReader file(options.file);
    const replay::ImageTrace image(file, file.images().front());
    Found found;
    found.lines = tracing::check_image(options, image, file.images().front(), found.checked);
    return found;
}

Found check_changed(const std::function<void(Content&)>& change) {
    Content content = recorded();
    change(content);
    return check(content);
}

TEST_CASE("a recording is consistent") {
    const Found found = check(recorded());
    CHECK(found.lines.empty());
    CHECK(found.checked.instructions == 5069);
    CHECK(found.checked.returns == 115);
    CHECK(found.checked.other_returns == 0);
}

TEST_CASE("blocks follow one another") {
    CHECK(check_changed([](Content& content) {
              // Repeats a block that does not lead to itself, with all its records.
              const std::size_t first = content.find(TRACE_SITE_BLOCK);
              const std::size_t end = content.find(TRACE_SITE_BLOCK, first + 1);
              const std::vector block(content.records.begin() + static_cast<std::ptrdiff_t>(first),
                                      content.records.begin() + static_cast<std::ptrdiff_t>(end));
              content.records.insert(content.records.begin(), block.begin(), block.end());
              const trace_site_t& site = content.sites[block.front().site];
              content.instructions += content.blocks[content.instrs[site.instr].block].instr_count;
          })
              .is({"process 7, image 1: jumps of the control flow: 1; the first: in thread 1, "
                   "instruction ",
                   " is executed instead of "}));
    CHECK(check_changed([](Content& content) {
              const std::size_t block = content.find(TRACE_SITE_BLOCK, 1);
              content.insert(block + 1, 200, content.add_site(block, TRACE_SITE_BLOCK_LEFT));
          }).is({"jumps of the control flow: 1", "is left after 200 of its"}));
    CHECK(check_changed([](Content& content) {
              const std::size_t block = content.find(TRACE_SITE_BLOCK, 10);
              content.insert(block, 0x1234, content.add_site(block, TRACE_SITE_INTERRUPTED));
              content.insert(block, 0x7000, content.add_site(block, TRACE_SITE_SIGNAL));
          }).is({"jumps of the control flow: 1", "a signal interrupts the thread at 0x1234"}));
}

TEST_CASE("instructions make their references") {
    CHECK(check_changed([](Content& content) { content.erase(content.find(TRACE_SITE_WRITE)); })
              .is({"wrong references: 1; the first: in thread 1, instruction ",
                   "makes 0 references instead of 1"}));
    CHECK(check_changed([](Content& content) {
              const std::size_t read = content.find_read();
              content.insert(read, content.records[read].value, content.records[read].site);
          }).is({"wrong references: 1", "makes 2 references instead of 1"}));
    CHECK(check_changed([](Content& content) {
              const std::size_t read = content.find_read();
              std::size_t block = read;
              while (content.kind(block) != TRACE_SITE_BLOCK) --block;
              const trace_record_t moved = content.records[read];
              content.erase(read);
              content.insert(content.find(TRACE_SITE_BLOCK, block + 1) + 1, moved.value,
                             moved.site);
          }).is({"wrong references: ", "makes 0 references instead of 1"}));
    CHECK(check_changed([](Content& content) {
              content.sites[content.records[content.find_read()].site].kind = TRACE_SITE_WRITE;
          }).is({"code that does not fit together: 1", "does not fit its instruction"}));
    CHECK(check_changed([](Content& content) {
              content.erase(content.find(TRACE_SITE_COUNT) - 1);
          }).is({"wrong references: 1", "makes 19 references instead of 10 times 2"}));
}

TEST_CASE("instructions are what their bytes say") {
    CHECK(check_changed([](Content& content) {
              const auto call = std::find_if(
                  content.instrs.begin(), content.instrs.end(),
                  [](const trace_instr_t& instr) { return instr.flags & TRACE_INSTR_CALL; });
              call->flags ^= TRACE_INSTR_RETURN;
          }).is({"code that does not fit together: 1", "flags"}));
}

TEST_CASE("threads, events and counts") {
    CHECK(check_changed([](Content& content) {
              std::size_t block = content.records.size() - 1;
              while (content.kind(block) != TRACE_SITE_BLOCK) --block;
              content.insert(block, 0, content.add_site(block, TRACE_SITE_BURST),
                             trace::kThreadEnds);
          }).is({"wrong beginnings or ends of threads: ", "a record follows the thread's end"}));
    CHECK(check_changed([](Content& content) {
              ++content.events_before;
          }).is({"wrong places of events: 1", "part 0 follows"}));
    CHECK(check_changed([](Content& content) {
              ++content.instructions;
          }).is({"wrong counts: 1", "5069 instructions in", "the headers say 5070 in"}));
    CHECK(check_changed([](Content& content) {
              content.end.threads = 0;
          }).is({"wrong counts: 1", "1 threads were read, but the end of the program says 0"}));
}

TEST_CASE("returns that go elsewhere are only counted") {
    const Found found = check_changed([](Content& content) {
        content.records[content.find(TRACE_SITE_RETURN, content.records.size() / 2)].value += 8;
    });
    CHECK(found.lines.empty());
    CHECK(found.checked.other_returns > 0);
}

}  // namespace
}  // namespace trace_check_test
