// Trace files: what is written is read, and what is damaged does no harm.
#include "framework/driver/replay/image_trace.h"
#include "framework/driver/replay/miss_filter.h"
#include "framework/driver/replay/parallel_parts.h"
#include "framework/driver/replay/replay_plan.h"
#include "framework/recording/record_coding.h"
#include "framework/recording/trace_file_reader.h"
#include "framework/recording/trace_file_writer.h"
#include "framework/support/error.h"
#include "tests/unit/temporary_folder.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace recording_test {

using namespace assay;
using namespace assay::recording;

namespace {

constexpr std::uint32_t kBlocks = 40, kInstrs = 3;  // of each block

// Blocks of a push, a load and a branch, each with the sites that a recording has.
struct Code {
    std::vector<trace_block_t> blocks;
    std::vector<trace_instr_t> instrs;
    std::vector<trace_site_t> sites;

    Code() {
        for (std::uint32_t b = 0; b < kBlocks; ++b) {
            const std::uint64_t pc = 0x401000 + b * 16;
            blocks.push_back({pc, b * kInstrs, kInstrs});
            sites.push_back({b * kInstrs, 0, TRACE_SITE_BLOCK, 0});
            add(pc, b, {0x55}, TRACE_INSTR_STORE);
            sites.push_back({b * kInstrs, 8, TRACE_SITE_WRITE, 0});
            add(pc + 1, b, {0x48, 0x8b, 0x07}, TRACE_INSTR_LOAD);
            sites.push_back({b * kInstrs + 1, 8, TRACE_SITE_READ, 0});
            add(pc + 4, b, {0x75, 0xfe}, TRACE_INSTR_CONDITIONAL);
        }
        sites.push_back({0, 0, TRACE_SITE_STACK, 0});
    }
    std::uint32_t stack() const { return static_cast<std::uint32_t>(sites.size() - 1); }

  private:
    void add(std::uint64_t pc, std::uint32_t block, std::initializer_list<std::uint8_t> bytes,
             unsigned flags) {
        trace_instr_t instr{};
        instr.pc = pc;
        instr.block = block;
        instr.length = static_cast<std::uint8_t>(bytes.size());
        instr.flags = static_cast<std::uint8_t>(flags);
        std::copy(bytes.begin(), bytes.end(), instr.bytes);
        instrs.push_back(instr);
    }
};

// Loops over a few blocks, with addresses that mostly follow rules, and some that follow none.
std::vector<trace_record_t> records(const Code& code, std::size_t count, unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<trace_record_t> made;
    for (std::uint64_t i = 0; made.size() < count; ++i) {
        const auto block =
            static_cast<std::uint32_t>(random() % 8 == 0 ? random() % kBlocks : i % 5);
        made.push_back({0, block * 3, 0});
        made.push_back({0x7ffd'0000'0000 - 8 * (i % 64), block * 3 + 1, 0});
        made.push_back({random() % 4 == 0 ? random() : 0x5555'0000'0000 + i * 8, block * 3 + 2, 0});
        if (random() % 16 == 0)
            made.push_back({random(), code.stack(), static_cast<std::uint32_t>(random() % 3)});
    }
    made.resize(count);
    return made;
}

template <typename T>
void append(std::vector<std::byte>& to, const std::vector<T>& rows) {
    const auto bytes = std::as_bytes(std::span(rows));
    to.insert(to.end(), bytes.begin(), bytes.end());
}

trace_chunk_t header(std::uint32_t kind, std::uint32_t slot = 0) {
    trace_chunk_t made{};
    made.kind = kind;
    made.pid = 7;
    made.image = 1;
    made.slot = made.thread = slot;
    return made;
}

void write_code(TraceFileWriter& file, const Code& code) {
    const trace_code_t head{
        0, kBlocks, 0, kBlocks * kInstrs, 0, static_cast<std::uint32_t>(code.sites.size())};
    std::vector<std::byte> content;
    append(content, std::vector{head});
    append(content, code.blocks);
    append(content, code.instrs);
    append(content, code.sites);
    file.append(header(TRACE_CHUNK_CODE), content);
}

// Two threads that take turns, in chunks of a few parts each.
void write_trace(const std::string& path, const Code& code,
                 const std::vector<std::vector<trace_record_t>>& parts) {
    TraceFileWriter file(path);
    trace_image_t image{};
    image.size = sizeof image;
    file.append(header(TRACE_CHUNK_IMAGE), std::as_bytes(std::span(&image, 1)));
    write_code(file, code);
    RecordEncoder encoders[2];
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto slot = static_cast<std::uint32_t>(i / 2 % 2);
        RecordEncoder& encoder = encoders[slot];
        encoder.begin_part(i, parts[i].size(), 0, {});
        encoder.add(parts[i], code.sites);
        if (i % 7 < 5 && i + 2 < parts.size()) continue;
        trace_chunk_t chunk = header(TRACE_CHUNK_RECORDS, slot);
        chunk.records = encoder.records();
        file.append(chunk, encoder.take());
    }
    for (const std::uint32_t slot : {0U, 1U}) {
        trace_chunk_t chunk = header(TRACE_CHUNK_RECORDS, slot);
        chunk.records = encoders[slot].records();
        if (chunk.records != 0) file.append(chunk, encoders[slot].take());
    }
    trace_image_end_t end{};
    end.size = sizeof end;
    end.state = TRACE_IMAGE_ENDED;
    end.parts = parts.size();
    file.append(header(TRACE_CHUNK_END), std::as_bytes(std::span(&end, 1)));
}

std::vector<std::vector<trace_record_t>> some_parts(const Code& code) {
    std::vector<std::vector<trace_record_t>> parts;
    for (unsigned i = 0; i < 30; ++i) parts.push_back(records(code, 1 + i * 97 % 3000, i));
    return parts;
}

bool same(std::span<const trace_record_t> a, std::span<const trace_record_t> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Without what a RecordDecoder tells of blocks.
std::vector<trace_record_t> as_recorded(std::span<const trace_record_t> records, const Code& code) {
    std::vector<trace_record_t> made(records.begin(), records.end());
    for (trace_record_t& record : made)
        if (code.sites[record.site].kind == TRACE_SITE_BLOCK) record.value = 0;
    return made;
}

std::string read_whole(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write_whole(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

// Reads all that there is, with some threads, or none of its own. The number of records; what is
// wrong goes to `problem`.
std::uint64_t read_all(const std::string& path, std::string& problem, std::size_t threads = 0) {
    problem.clear();
    std::uint64_t count = 0;
    try {
        const TraceFileReader file(path);
        problem = file.damage();
        for (const RecordedImage& recorded : file.images()) {
            const replay::ImageTrace image(file, recorded);
            std::string missing;
            const auto add = [&](const replay::PartSequence::Part& part) {
                count += part.records.size();
            };
            if (threads == 0) {
                replay::PartSequence sequence(image);
                for (replay::PartSequence::Part part; sequence.next(part);) add(part);
                missing = sequence.problem();
            } else {
                replay::ParallelParts parts(image, {}, threads);
                parts.run(add);
                missing = parts.problem();
            }
            if (problem.empty()) problem = image.problem();
            if (problem.empty()) problem = missing;
        }
    } catch (const Error& e) {
        problem = e.what();
    }
    return count;
}

// Writes the trace again with one chunk's content changed. All checksums of the result are right.
template <typename Change>
void rewrite(const std::string& from, const std::string& to, std::size_t number,
             const Change& change) {
    const TraceFileReader file(from);
    TraceFileWriter out(to);
    std::size_t at = 0;
    for (const ChunkPlace& chunk : file.images().front().chunks) {
        trace_chunk_t head = chunk.header;
        std::vector<std::byte> content = file.read(chunk);
        if (at++ == number) change(head, content);
        out.append(head, content);
    }
}

// Changes the rows of a trace's code, which is one chunk, and returns what its reader says.
template <typename Change>
std::string problem_of_code(const std::string& path, const Code& code, const Change& change) {
    trace_image_t image{};
    image.size = sizeof image;
    Code changed = code;
    change(changed);
    {
        TraceFileWriter file(path);
        file.append(header(TRACE_CHUNK_IMAGE), std::as_bytes(std::span(&image, 1)));
        write_code(file, changed);
    }
    std::string problem;
    read_all(path, problem);
    return problem;
}

// A trace of these parts.
struct SomeTrace {
    SomeTrace() { write_trace(path, code, parts); }

    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
    const Code code;
    const std::vector<std::vector<trace_record_t>> parts = some_parts(code);
};

}  // namespace

TEST_CASE("records of several threads come back in their order") {
    const SomeTrace trace;
    const TraceFileReader file(trace.path);
    CHECK(file.damage().empty());
    REQUIRE(file.images().size() == 1);
    const replay::ImageTrace image(file, file.images().front());
    CHECK(image.problem().empty());
    CHECK(image.blocks().size() == kBlocks);
    CHECK(image.end()->state == TRACE_IMAGE_ENDED);
    replay::PartSequence sequence(image);
    replay::PartSequence::Part part;
    for (std::size_t i = 0; i < trace.parts.size(); ++i) {
        REQUIRE(sequence.next(part));
        CHECK(part.slot == i / 2 % 2);
        CHECK(same(as_recorded(part.records, trace.code), trace.parts[i]));
    }
    CHECK(!sequence.next(part));
    CHECK(sequence.problem().empty());
}

TEST_CASE("what can be predicted takes next to nothing") {
    const Code code;
    RecordEncoder encoder;
    std::vector<trace_record_t> made;
    for (std::uint64_t i = 0; i < 100'000; ++i) {
        made.push_back({0, 0, 0});
        made.push_back({0x7ffd'0000'0000, 1, 0});
        made.push_back({0x5555'0000'0000 + i * 8, 2, 0});
    }
    encoder.begin_part(0, made.size(), 0, {});
    encoder.add(made, code.sites);
    CHECK(encoder.records() == made.size());
    CHECK(encoder.take().size() < 200);
}

TEST_CASE("values come back, and those of memory that was written before take next to nothing") {
    // An instruction that stores what it has computed, and one that loads it again.
    const std::vector<trace_site_t> sites{{0, 0, TRACE_SITE_BLOCK, 0},
                                          {0, 16, TRACE_SITE_WRITE, 0},
                                          {0, 8, TRACE_SITE_VALUE, TRACE_STORED},
                                          {0, 8, TRACE_SITE_VALUE_REST, TRACE_STORED},
                                          {1, 16, TRACE_SITE_READ, 0},
                                          {1, 8, TRACE_SITE_VALUE, TRACE_LOADED},
                                          {1, 8, TRACE_SITE_VALUE_REST, TRACE_LOADED},
                                          {1, 4, TRACE_SITE_VALUE, TRACE_DESTINATION}};
    std::mt19937_64 random(1);
    const auto execute = [&](std::size_t times, bool again) {
        std::vector<trace_record_t> made;
        for (std::uint64_t i = 0; i < times; ++i) {
            const std::uint64_t at = 0x7ffd'0000'0000 + 16 * (i % 64), low = random(),
                                high = random();
            made.insert(made.end(), {{0, 0, 0}, {at, 1, 0}, {low, 2, 0}, {high, 3, 0}});
            if (again) made.insert(made.end(), {{at, 4, 0}, {low, 5, 0}, {high, 6, 0}});
            made.push_back({i % 7 == 0 ? random() >> 32 : 5, 7, 0});
        }
        return made;
    };
    const auto encode = [&](const std::vector<trace_record_t>& made) {
        RecordEncoder encoder;
        encoder.begin_part(0, made.size(), 0, {});
        encoder.add(made, sites);
        return encoder.take();
    };
    const auto made = execute(2000, true);
    const std::vector<std::byte> content = encode(made);
    random.seed(1);
    CHECK(content.size() < encode(execute(2000, false)).size() + 2000);
    trace_chunk_t chunk = header(TRACE_CHUNK_RECORDS);
    chunk.records = made.size();
    chunk.raw_bytes = static_cast<std::uint32_t>(content.size());
    trace_decoder_t decoder;
    REQUIRE(trace_decoder_init(&decoder, sites.data(), static_cast<std::uint32_t>(sites.size())) ==
            0);
    REQUIRE(trace_records_begin(&decoder, &chunk, content.data()) == 0);
    std::vector<trace_record_t> back(made.size());
    CHECK(trace_records_next(&decoder, back.data(), back.size()) == back.size());
    CHECK(same(back, made));
    trace_decoder_release(&decoder);
}

TEST_CASE("sites that are found on the way are as if they had always been there") {
    const Code code;
    const auto made = records(code, 5000, 3);
    RecordEncoder encoder;
    encoder.begin_part(0, made.size(), 0, {});
    // As few as each portion needs.
    for (std::span<const trace_record_t> left(made); !left.empty();) {
        const auto some = left.first(std::min<std::size_t>(left.size(), 50));
        std::size_t most = 0;
        for (const trace_record_t& record : made)
            most = std::max<std::size_t>(most, record.site + 1);
        encoder.add(some, std::span(code.sites).first(most));
        left = left.subspan(some.size());
    }
    trace_chunk_t chunk = header(TRACE_CHUNK_RECORDS);
    chunk.records = encoder.records();
    const std::vector<std::byte> content = encoder.take();
    chunk.raw_bytes = static_cast<std::uint32_t>(content.size());
    trace_decoder_t decoder;
    REQUIRE(trace_decoder_init(&decoder, code.sites.data(),
                               static_cast<std::uint32_t>(code.sites.size())) == 0);
    REQUIRE(trace_records_begin(&decoder, &chunk, content.data()) == 0);
    std::vector<trace_record_t> back(made.size());
    CHECK(trace_records_next(&decoder, back.data(), back.size()) == back.size());
    CHECK(same(back, made));
    trace_decoder_release(&decoder);
}

// Two threads' chunks of several parts, and what else is written between them.
void write_chunks(const std::string& path, std::size_t threads, const Code& code) {
    TraceFileWriter file(path);
    ChunkWriter writer(file, threads);
    std::shared_ptr<ChunkWriter::Chunk> chunks[2];
    for (unsigned i = 0; i < 60; ++i) {
        const unsigned slot = i % 2;
        if (!chunks[slot]) chunks[slot] = writer.begin();
        const auto made = records(code, 1000 + i, i);
        ChunkWriter::add(*chunks[slot], {.order = i, .records = made, .table = code.sites});
        if (i % 5 != 4) continue;
        const std::vector<std::byte> events(i * 100, std::byte{7});
        writer.append(header(TRACE_CHUNK_EVENTS), events);
        writer.finish(std::exchange(chunks[slot], nullptr), header(TRACE_CHUNK_RECORDS, slot));
    }
    for (const unsigned slot : {0U, 1U})
        if (chunks[slot]) writer.finish(chunks[slot], header(TRACE_CHUNK_RECORDS, slot));
    writer.drain();
}

TEST_CASE("a file does not depend on how many threads write it") {
    const TemporaryFolder folder;
    const Code code;
    write_chunks(folder.file("one"), 1, code);
    const std::string one = read_whole(folder.file("one"));
    const TraceFileReader reader(folder.file("one"));
    CHECK(reader.damage().empty());
    REQUIRE(reader.images().size() == 1);
    CHECK(reader.images()[0].chunks.size() == 25);
    for (const std::size_t threads : {2, 3, 8}) {
        write_chunks(folder.file("several"), threads, code);
        CHECK(read_whole(folder.file("several")) == one);
    }
}

TEST_CASE("a chunk is read into the memory of others") {
    const TemporaryFolder folder;
    const Code code;
    write_chunks(folder.file("trace"), 1, code);
    const TraceFileReader reader(folder.file("trace"));
    REQUIRE(reader.images().size() == 1);
    std::vector<std::byte> content;
    const std::byte* memory = nullptr;
    for (unsigned round = 0; round < 2; ++round) {
        for (const ChunkPlace& chunk : reader.images()[0].chunks) {
            content = reader.read(chunk, std::move(content));
            CHECK(content == reader.read(chunk));
            // It is large enough for all of them after the first round.
            if (round != 0) CHECK(content.data() == memory);
            memory = content.data();
        }
    }
}

TEST_CASE("a full disk ends the writing of chunks") {
    const Code code;
    CHECK_THROWS_AS(TraceFileWriter("/dev/full"), Error);  // its header
    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
    TraceFileWriter small(path);
    rlimit limit{};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    const rlimit little{10'000, limit.rlim_max};
    const auto before = signal(SIGXFSZ, SIG_IGN);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &little) == 0);
    {
        ChunkWriter writer(small, 2);
        const auto made = records(code, 30'000, 1);
        const auto go_on = [&] {
            for (int i = 0; i < 1000; ++i) {
                const auto chunk = writer.begin();
                ChunkWriter::add(*chunk, {.records = made, .table = code.sites});
                writer.finish(chunk, header(TRACE_CHUNK_RECORDS));
            }
        };
        CHECK_THROWS_WITH_AS(go_on(), doctest::Contains(path.c_str()), Error);
        CHECK_THROWS_AS(writer.drain(), Error);
    }
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    signal(SIGXFSZ, before);
}

TEST_CASE("processes append to one file side by side") {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
    constexpr int kProcesses = 4, kChunks = 50;
    TraceFileWriter file(path);
    const std::vector<std::byte> content(30'000);
    pid_t children[kProcesses];
    for (int p = 0; p < kProcesses; ++p) {
        children[p] = fork();
        if (children[p] != 0) continue;
        trace_chunk_t mine = header(TRACE_CHUNK_EVENTS);
        mine.pid = static_cast<std::uint32_t>(p);
        for (int i = 0; i < kChunks; ++i) file.append(mine, content);
        _exit(0);
    }
    for (const pid_t child : children) CHECK(waitpid(child, nullptr, 0) == child);
    const TraceFileReader reader(path);
    CHECK(reader.damage().empty());
    REQUIRE(reader.images().size() == kProcesses);
    for (const RecordedImage& image : reader.images()) CHECK(image.chunks.size() == kChunks);
}

TEST_CASE("damaged traces give what is whole, and say what is wrong") {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace"), broken = folder.file("broken");
    const Code code;
    const auto parts = some_parts(code);
    write_trace(path, code, parts);
    const std::string whole = read_whole(path);
    std::string problem;
    const std::uint64_t all = read_all(path, problem);
    CHECK(problem.empty());
    std::mt19937 random(1);
    for (int i = 0; i < 300; ++i) {
        write_whole(broken, whole.substr(0, random() % whole.size()));
        CHECK(read_all(broken, problem) <= all);
        // Nothing is missing if it was cut between chunks, but for the end.
        std::string flipped = whole;
        const std::size_t at = random() % whole.size();
        flipped[at] = static_cast<char>(flipped[at] ^ 1 << random() % 8);
        write_whole(broken, flipped);
        const std::uint64_t got = read_all(broken, problem);
        CHECK(got <= all);
        INFO("flipped at ", at);
        // Of the file's header and of zstd's frames (RFC 8878, 3.1.1.1.1.3) some bits say nothing.
        CHECK((got == all || !problem.empty()));
    }
}

TEST_CASE("code that does not fit together is refused, though its checksums are right") {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
    const Code code;
    const auto is_refused = [&](auto change) {
        return problem_of_code(path, code, change).find("does not fit together") !=
               std::string::npos;
    };
    CHECK(!is_refused([](Code&) {}));
    CHECK(is_refused([](Code& of) { of.blocks[3].first_instr = 1'000'000; }));
    CHECK(is_refused([](Code& of) { of.blocks[3].first_instr -= kInstrs; }));
    CHECK(is_refused([](Code& of) { of.blocks[3].instr_count = 0; }));
    CHECK(is_refused([](Code& of) { of.blocks[3].instr_count = 256; }));
    CHECK(is_refused([](Code& of) { of.blocks.back().instr_count = UINT32_MAX; }));
    CHECK(is_refused([](Code& of) { of.blocks[3].pc += 1; }));
    CHECK(is_refused([](Code& of) { of.instrs[4].block = kBlocks; }));
    CHECK(is_refused([](Code& of) { of.instrs[4].length = 0; }));
    CHECK(is_refused([](Code& of) { of.instrs[4].length = 16; }));
    CHECK(is_refused([](Code& of) { of.sites[7].instr = kBlocks * kInstrs; }));
    CHECK(is_refused([](Code& of) { of.sites.back().instr = UINT32_MAX; }));
}

TEST_CASE("a chunk of code that is refused leaves nothing behind") {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
    const Code code;
    const std::uint32_t sites = static_cast<std::uint32_t>(code.sites.size());
    {
        TraceFileWriter file(path);
        trace_image_t image{};
        image.size = sizeof image;
        file.append(header(TRACE_CHUNK_IMAGE), std::as_bytes(std::span(&image, 1)));
        write_code(file, code);
        // The second one has a good block, instruction and site, and a site of no instruction.
        const std::vector heads{trace_code_t{kBlocks, 1, kBlocks * kInstrs, 1, sites, 2}};
        std::vector<std::byte> content;
        append(content, heads);
        append(content, std::vector{trace_block_t{0x500000, kBlocks * kInstrs, 1}});
        trace_instr_t instr = code.instrs.front();
        instr.pc = 0x500000;
        instr.block = kBlocks;
        append(content, std::vector{instr});
        append(content, std::vector<trace_site_t>{{kBlocks * kInstrs, 0, TRACE_SITE_BLOCK, 0},
                                                  {UINT32_MAX, 8, TRACE_SITE_READ, 0}});
        file.append(header(TRACE_CHUNK_CODE), content);
    }
    const TraceFileReader file(path);
    const replay::ImageTrace image(file, file.images().front());
    CHECK(image.problem().find("does not fit together") != std::string::npos);
    CHECK(image.blocks().size() == kBlocks);
    CHECK(image.instrs().size() == kBlocks * kInstrs);
    CHECK(image.sites().size() == sites);
}

TEST_CASE("chunks with any content and right checksums do no harm") {
    const SomeTrace trace;
    const std::string broken = trace.folder.file("broken");
    const TraceFileReader whole(trace.path);
    const std::size_t chunks = whole.images().front().chunks.size();
    std::mt19937 random(5);
    for (unsigned i = 0; i < 600; ++i) {
        rewrite(trace.path, broken, random() % chunks,
                [&](trace_chunk_t& head, std::vector<std::byte>& content) {
                    if (i % 8 == 0) {
                        auto* const bytes = reinterpret_cast<unsigned char*>(&head);
                        bytes[8 + random() % 40] = static_cast<unsigned char>(random());
                        return;
                    }
                    if (i % 8 == 1) content.resize(random() % (content.size() + 1));
                    for (unsigned changes = 1 + random() % 3; changes && !content.empty();
                         --changes)
                        content[random() % std::min<std::size_t>(content.size(), 4096)] =
                            static_cast<std::byte>(random());
                });
        std::string problem;
        read_all(broken, problem);
        try {
            const TraceFileReader file(broken);
            for (const RecordedImage& recorded : file.images()) {
                const replay::ImageTrace image(file, recorded);
                for (const trace_instr_t& instr : image.instrs())
                    REQUIRE(instr.block < image.blocks().size());
                for (const trace_site_t& site : image.sites())
                    REQUIRE(site.instr < image.instrs().size());
            }
        } catch (const Error& e) {
            CHECK(std::string(e.what()).starts_with(broken));
        }
    }
}

TEST_CASE("a trace without some of its records says so") {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace"), cut = folder.file("cut");
    const Code code;
    write_trace(path, code, some_parts(code));
    const std::string whole = read_whole(path);
    const TraceFileReader file(path);
    std::string problem;
    for (const recording::ChunkPlace& chunk : file.images().front().chunks) {
        if (chunk.header.kind != TRACE_CHUNK_RECORDS) continue;
        std::string text = whole;
        text.erase(chunk.offset - sizeof chunk.header,
                   sizeof chunk.header + chunk.header.stored_bytes);
        write_whole(cut, text);
        read_all(cut, problem);
        CHECK(problem.find("does not have all records") != std::string::npos);
    }
}

TEST_CASE("other files are no traces") {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
    std::string problem;
    for (const std::string text : {"", "assay", "events: Ir\n", "assaytrc"}) {
        write_whole(path, text);
        CHECK(read_all(path, problem) == 0);
        CHECK(problem == path + " is no trace: those are made by assay record");
    }
    write_whole(path, std::string("assaytrc\x03\0\0\0\0\0\0\0", 16));
    CHECK(read_all(path, problem) == 0);
    CHECK(problem == path + " is a trace of version 3, and this assay reads up to 2");
    CHECK(read_all(folder.file("."), problem) == 0);
    CHECK(problem == folder.file(".") + " is no regular file, which a trace must be");
}

TEST_CASE("filters of a replay pass what a simulation needs") {
    trace::Spec spec{};
    spec.data = {64, 2};
    replay::DataFilter plain(spec);
    CHECK(plain.passes(0, 8, false));
    CHECK(!plain.passes(8, 8, true));
    CHECK(plain.passes(64, 8, false));
    CHECK(!plain.passes(0, 8, false));
    CHECK(plain.passes(128, 8, false));  // takes the place of line 0
    CHECK(plain.passes(60, 8, false));   // lines 0 and 1
    CHECK(!plain.passes(60, 8, false));
    CHECK(!plain.passes(0, 4096, false));  // taken for its first line
    plain.forget();
    CHECK(plain.passes(0, 8, false));
    spec.data.kind = trace::Filter::kFirstWrites;
    replay::DataFilter writes(spec);
    CHECK(writes.passes(0, 8, false));
    CHECK(writes.passes(8, 8, true));
    CHECK(!writes.passes(16, 8, true));
    CHECK(!writes.passes(16, 8, false));
    CHECK(writes.passes(128, 8, true));
    CHECK(writes.passes(0, 8, false));
    CHECK(writes.passes(0, 8, true));
}

TEST_CASE("blocks and sites of a replay are those of the specification") {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
    const Code code;
    write_trace(path, code, some_parts(code));
    const TraceFileReader file(path);
    const replay::ImageTrace image(file, file.images().front());
    const auto count = [](const replay::ReplayPlan& plan, unsigned kind) {
        return std::count_if(plan.shown_sites().begin(), plan.shown_sites().end(),
                             [&](const trace_site_t& site) { return site.kind == kind; });
    };
    trace::Spec spec{};
    spec.captures = trace::kCaptureFetches;
    spec.fetch = {64, 8};
    const trace::ValueLists none{};
    const replay::ReplayPlan fetches(image, spec, none);
    // A block of 7 bytes each 16: none goes on into another line.
    CHECK(count(fetches, TRACE_SITE_FETCH) == kBlocks);
    CHECK(count(fetches, TRACE_SITE_READ) == 0);
    spec.captures = trace::kCaptureReferences | trace::kCaptureBranches;
    spec.branches = TRACE_CONDITIONAL_BRANCHES;
    const replay::ReplayPlan others(image, spec, none);
    CHECK(count(others, TRACE_SITE_READ) == kBlocks);
    CHECK(count(others, TRACE_SITE_WRITE) == kBlocks);
    CHECK(count(others, TRACE_SITE_BRANCH) == kBlocks);
    CHECK(count(others, TRACE_SITE_BLOCK) == 0);
    CHECK(others.facts(others.blocks()[0]).end == replay::BlockEnd::kConditional);
    CHECK(others.facts(others.blocks()[0]).next_pc == 0x401006);
}

TEST_CASE("parts that several threads decode are taken in their order") {
    const SomeTrace trace;
    const TraceFileReader file(trace.path);
    const replay::ImageTrace image(file, file.images().front());
    for (const std::size_t threads : {1, 2, 3, 20}) {
        CAPTURE(threads);
        std::vector<std::vector<trace_record_t>> taken;
        replay::ParallelParts parallel(image, {}, threads);
        parallel.run([&](const replay::PartSequence::Part& part) {
            CHECK(part.order == taken.size());
            taken.push_back(as_recorded(part.records, trace.code));
        });
        CHECK(parallel.problem().empty());
        REQUIRE(taken.size() == trace.parts.size());
        for (std::size_t i = 0; i < trace.parts.size(); ++i) CHECK(same(taken[i], trace.parts[i]));
        replay::ParallelParts failing(image, {}, threads);
        std::size_t count = 0;
        CHECK_THROWS_AS(failing.run([&](const replay::PartSequence::Part&) {
            if (++count == 7) throw Error("no more");
        }),
                        Error);
        CHECK(count == 7);
    }
}

TEST_CASE("several threads read of a damaged trace what one reads") {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
    const Code code;
    write_trace(path, code, some_parts(code));
    const std::string whole = read_whole(path);
    std::mt19937 random(3);
    for (unsigned i = 0; i < 200; ++i) {
        std::string damaged = whole;
        if (i % 2 == 0) damaged.resize(random() % damaged.size());
        if (!damaged.empty()) damaged[random() % damaged.size()] ^= static_cast<char>(1 << i % 8);
        write_whole(path, damaged);
        std::string problem, parallel_problem;
        const std::uint64_t expected = read_all(path, problem);
        CHECK(read_all(path, parallel_problem, 3) == expected);
        CHECK(parallel_problem.empty() == problem.empty());
    }
}

TEST_CASE("sites of values are in the order of the list that is wanted, and some may be left out") {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
    Code code;
    const std::uint32_t push = 0, load = 1;  // instructions of the first block
    const auto first = static_cast<std::uint32_t>(code.sites.size());
    code.sites.insert(code.sites.end(), {{push, 8, TRACE_SITE_VALUE, TRACE_STORED},
                                         {push, 8, TRACE_SITE_VALUE_REST, TRACE_STORED},
                                         {push, 8, TRACE_SITE_VALUE, TRACE_SOURCE0 | 128},
                                         {load, 8, TRACE_SITE_VALUE, TRACE_NONE},
                                         {load, 8, TRACE_SITE_VALUE, TRACE_DESTINATION},
                                         {load, 8, TRACE_SITE_VALUE, TRACE_NONE},
                                         {load, 8, TRACE_SITE_VALUE, TRACE_DESTINATION}});
    write_trace(path, code, some_parts(code));
    const TraceFileReader file(path);
    const replay::ImageTrace image(file, file.images().front());
    trace::Spec spec{};
    spec.captures = trace::kCaptureValues;
    trace::ValueLists lists{};
    trace::ValueList& of_stores = lists.lists[0][0][TRACE_INSTR_STORE];
    trace::ValueList& of_loads = lists.lists[0][0][TRACE_INSTR_LOAD];
    of_stores.selected = of_loads.selected = 1;
    of_stores.add(trace::value_byte(TRACE_SOURCE0 | TRACE_BEFORE), false);
    of_stores.add(TRACE_STORED, true);
    const replay::ReplayPlan plan(image, spec, lists);
    const auto shown = [&](const replay::ReplayPlan& of, std::uint32_t recorded) {
        return of.sites()[first + recorded].site;
    };
    CHECK(shown(plan, 2) == 0);
    CHECK(shown(plan, 0) == 1);
    CHECK(shown(plan, 1) == 2);
    // Only that it was executed, in each of two ways that it leads on.
    CHECK(shown(plan, 3) == 3);
    CHECK(shown(plan, 4) == replay::kNoSite);
    CHECK(shown(plan, 5) == 4);
    CHECK(plan.shown_sites().size() == 5);
    of_stores.wide = 0;
    of_loads.selected = 0;
    const replay::ReplayPlan narrow(image, spec, lists);
    CHECK(shown(narrow, 1) == replay::kNoSite);
    CHECK(shown(narrow, 3) == replay::kNoSite);
    CHECK(narrow.shown_sites().size() == 2);
    of_stores = {.selected = 1, .count = 0, .values = {}, .wide = 0};
    const replay::ReplayPlan nothing(image, spec, lists);
    CHECK(shown(nothing, 0) == 0);
    CHECK(nothing.sites()[first].tells_nothing);
    CHECK(nothing.shown_sites()[0].operand == TRACE_NONE);
}

TEST_CASE("records have the number of their instruction in the thread") {
    constexpr trace_block_t kFirst{0x1000, 0, 5}, kSecond{0x2000, 5, 3};
    trace_position_t position{};
    const auto number = [&](unsigned kind, const trace_block_t& block, std::uint32_t instr,
                            std::uint64_t value = 0, std::uint32_t aux = 0) {
        const trace_site_t site{instr, 0, static_cast<std::uint8_t>(kind), 0};
        const trace_record_t record{value, 0, aux};
        return trace_position_next(&position, &record, &site, &block);
    };
    CHECK(number(TRACE_SITE_BLOCK, kFirst, 0) == 1);
    CHECK(number(TRACE_SITE_READ, kFirst, 3) == 4);
    CHECK(number(TRACE_SITE_SIGNAL, kSecond, 5) == 6);  // comes before the handler's block
    CHECK(number(TRACE_SITE_BLOCK, kSecond, 5) == 6);
    CHECK(number(TRACE_SITE_BLOCK_LEFT, kSecond, 5, 2) == 6);
    CHECK(position.executed == 7);
    CHECK(number(TRACE_SITE_SIGNAL, kFirst, 0) == 8);
    CHECK(number(TRACE_SITE_BLOCK, kFirst, 0) == 8);
    CHECK(number(TRACE_SITE_BURST, kFirst, 0, 0x2000, trace::kGoesOnAt) == 13);
    CHECK(number(TRACE_SITE_BURST, kFirst, 0, 12, trace::kBurstEnds) == 13);
    CHECK(number(TRACE_SITE_BURST, kFirst, 0, 100, trace::kRestEnds) == 101);
    CHECK(number(TRACE_SITE_BLOCK, kSecond, 5) == 101);
    // A chunk can begin with records of a block that began before.
    trace_position_begin(&position, 50);
    CHECK(number(TRACE_SITE_WRITE, kSecond, 6) == 49);
    trace_position_begin(&position, 50);
    CHECK(number(TRACE_SITE_BLOCK, kFirst, 0) == 51);
}

}  // namespace recording_test
