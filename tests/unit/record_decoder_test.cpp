// RecordDecoder gives what the functions of assay/trace_file.h give, whatever is in a chunk.
#include "assay/trace_vlist.h"
#include "framework/recording/record_coding.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace record_decoder_test {

using namespace assay;
using namespace assay::recording;

namespace {

// Blocks of up to 300 references, some with calls behind or among them.
std::vector<trace_site_t> some_sites(std::mt19937_64& random, bool values) {
    std::vector<trace_site_t> sites;
    for (std::uint32_t block = 0; block < 60; ++block) {
        sites.push_back({block, 0, TRACE_SITE_BLOCK, 0});
        const std::uint64_t count = random() % 20 == 0 ? 300 : random() % 6;
        for (std::uint64_t i = 0; i < count; ++i) {
            sites.push_back(
                {block, 8, static_cast<std::uint8_t>(TRACE_SITE_READ + random() % 3), 0});
            if (values && random() % 2 == 0)
                sites.push_back({block, 8, TRACE_SITE_VALUE, TRACE_LOADED});
        }
        if (random() % 4 == 0) sites.push_back({block, 0, TRACE_SITE_CALL, 0});
        if (random() % 4 == 0) sites.push_back({block, 8, TRACE_SITE_WRITE, 0});
    }
    return sites;
}

// Executes the blocks mostly as a program does, from the first site of each to its last one.
std::vector<trace_record_t> some_records(std::span<const trace_site_t> sites,
                                         std::mt19937_64& random) {
    std::vector<std::uint32_t> blocks;
    for (std::uint32_t i = 0; i < sites.size(); ++i)
        if (sites[i].kind == TRACE_SITE_BLOCK) blocks.push_back(i);
    std::vector<trace_record_t> records;
    for (std::uint64_t i = 0; i < 4000; ++i) {
        std::uint32_t site = blocks[random() % 8 == 0 ? random() % blocks.size() : i % 12];
        records.push_back({0, site, 0});
        while (++site < sites.size() && sites[site].kind != TRACE_SITE_BLOCK) {
            if (random() % 50 == 0) continue;
            if (random() % 200 == 0) break;
            const std::uint64_t address = 0x7ffd'0000'0000 * (site % 2) + 8 * i;
            records.push_back({random() % 20 == 0 ? random() : address, site,
                               random() % 100 == 0 ? static_cast<std::uint32_t>(random()) : 0});
        }
    }
    return records;
}

trace_chunk_t chunk_of(std::size_t records, std::span<const std::byte> content) {
    trace_chunk_t chunk{};
    chunk.records = records;
    chunk.raw_bytes = static_cast<std::uint32_t>(content.size());
    return chunk;
}

// As many as it gives, in portions of up to `most`. Checks how many references each block has
// behind it.
std::vector<trace_record_t> quickly(RecordDecoder& decoder, std::span<const trace_site_t> sites,
                                    std::size_t count, std::size_t most) {
    std::vector<trace_record_t> all;
    for (bool more = true; more && all.size() < count;) {
        std::vector<trace_record_t> some(std::min(most, count - all.size()));
        const std::size_t got = decoder.next(some);
        more = got == some.size();
        for (std::size_t i = 0; i < got; ++i) {
            trace_record_t record = some[i];
            if (sites[record.site].kind == TRACE_SITE_BLOCK) {
                REQUIRE(record.value <= got - i - 1);
                for (std::uint64_t k = 1; k <= record.value; ++k) {
                    REQUIRE(some[i + k].site == record.site + k);
                    REQUIRE(sites[some[i + k].site].kind <= TRACE_SITE_MODIFY);
                }
                record.value = 0;
            }
            all.push_back(record);
        }
    }
    return all;
}

std::vector<trace_record_t> plainly(const trace_chunk_t& chunk, std::span<const std::byte> content,
                                    std::span<const trace_site_t> sites) {
    trace_decoder_t decoder;
    REQUIRE(trace_decoder_init(&decoder, sites.data(), static_cast<std::uint32_t>(sites.size())) ==
            0);
    std::vector<trace_record_t> all(chunk.records);
    all.resize(trace_records_begin(&decoder, &chunk, content.data()) == 0
                   ? trace_records_next(&decoder, all.data(), all.size())
                   : 0);
    trace_decoder_release(&decoder);
    return all;
}

std::size_t decoded_plainly(const trace_chunk_t& chunk, std::span<const std::byte> content,
                            std::span<const trace_site_t> sites) {
    trace_decoder_t decoder;
    REQUIRE(trace_decoder_init(&decoder, sites.data(), static_cast<std::uint32_t>(sites.size())) ==
            0);
    REQUIRE(trace_records_begin(&decoder, &chunk, content.data()) == 0);
    std::vector<trace_record_t> all(chunk.records);
    const std::size_t count = trace_records_next(&decoder, all.data(), all.size());
    CHECK((count == all.size() || trace_records_damaged(&decoder)));
    trace_decoder_release(&decoder);
    return count;
}

bool same(std::span<const trace_record_t> a, std::span<const trace_record_t> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
        return x.value == y.value && x.site == y.site && x.aux == y.aux;
    });
}

}  // namespace

TEST_CASE("records are decoded as the public functions decode them") {
    for (unsigned seed = 0; seed < 40; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 random(seed);
        const std::vector<trace_site_t> sites = some_sites(random, seed % 4 == 3);
        RecordDecoder decoder(sites);
        for (unsigned chunks = 0; chunks < 3; ++chunks) {
            const std::vector<trace_record_t> records = some_records(sites, random);
            RecordEncoder encoder;
            encoder.begin_part(0, records.size(), 0, {});
            encoder.add(records, sites);
            const std::vector<std::byte> content = encoder.take();
            const trace_chunk_t chunk = chunk_of(records.size(), content);
            CHECK(same(plainly(chunk, content, sites), records));
            REQUIRE(decoder.begin(chunk, content));
            CHECK(same(quickly(decoder, sites, records.size(), 1 + random() % 1000), records));
        }
    }
}

// The encoder keeps addresses of references only if there are values of memory.
TEST_CASE("values of memory can follow references from before their sites were added") {
    const std::vector<trace_site_t> sites{{0, 0, TRACE_SITE_BLOCK, 0},
                                          {0, 8, TRACE_SITE_READ, 0},
                                          {0, 8, TRACE_SITE_WRITE, 0},
                                          {0, 8, TRACE_SITE_VALUE, TRACE_LOADED},
                                          {0, 8, TRACE_SITE_VALUE, TRACE_STORED}};
    constexpr std::uint64_t kRead = 0x1000, kWritten = 0x2000, kOther = 0x3000, kFar = 1'000'000;
    std::vector<trace_record_t> records{{0, 0, 0}, {kRead, 1, 0}, {kWritten, 2, 0}};
    const std::size_t before = records.size();
    // Other values at another address, and then nearly the same values at the first ones.
    const auto add_values = [&](std::uint64_t loaded) {
        records.push_back({loaded, 3, 0});
        records.push_back({loaded + 5, 4, 0});
    };
    const auto execute = [&](std::uint64_t read, std::uint64_t written, std::uint64_t loaded) {
        records.insert(records.end(), {{0, 0, 0}, {read, 1, 0}, {written, 2, 0}});
        add_values(loaded);
    };
    add_values(10);
    execute(kOther, kOther + 8, kFar);
    execute(kRead, kWritten, 11);
    RecordEncoder encoder;
    encoder.begin_part(0, records.size(), 0, {});
    encoder.add(std::span(records).first(before), std::span(sites).first(before));
    encoder.add(std::span(records).subspan(before), sites);
    const std::vector<std::byte> content = encoder.take();
    const trace_chunk_t chunk = chunk_of(records.size(), content);
    CHECK(same(plainly(chunk, content, sites), records));
    RecordDecoder decoder(sites);
    REQUIRE(decoder.begin(chunk, content));
    CHECK(same(quickly(decoder, sites, records.size(), records.size()), records));
}

TEST_CASE("what is damaged is decoded as the public functions decode it") {
    std::mt19937_64 random(1);
    const std::vector<trace_site_t> sites = some_sites(random, false);
    const std::vector<trace_record_t> records = some_records(sites, random);
    RecordEncoder encoder;
    encoder.begin_part(0, records.size(), 0, {});
    encoder.add(records, sites);
    const std::vector<std::byte> content = encoder.take();
    RecordDecoder decoder(sites);
    for (unsigned i = 0; i < 300; ++i) {
        std::vector<std::byte> damaged = content;
        damaged[sizeof(trace_records_t) + random() % (content.size() - sizeof(trace_records_t))] ^=
            std::byte{static_cast<std::uint8_t>(1U << random() % 8)};
        const trace_chunk_t chunk = chunk_of(records.size(), damaged);
        const std::vector<trace_record_t> expected = plainly(chunk, damaged, sites);
        REQUIRE(decoder.begin(chunk, damaged));
        CHECK(same(quickly(decoder, sites, records.size(), 500), expected));
    }
}

// The bytes that trace_records_t describes.
TEST_CASE("a record that is not as predicted takes a byte and its difference") {
    const std::vector<trace_site_t> sites{{0, 0, TRACE_SITE_BLOCK, 0}, {0, 8, TRACE_SITE_READ, 0}};
    std::vector<trace_record_t> records;
    const auto execute = [&](std::uint64_t address) {
        records.push_back({0, 0, 0});
        records.push_back({address, 1, 0});
    };
    // Strides 8, then differences that need 1 to 8 bytes, and 20 executions as predicted.
    std::uint64_t address = 0x10'0000;
    execute(address);
    for (unsigned i = 0; i < 3; ++i) execute(address += 8);
    const std::uint64_t jumps[] = {0x10, 0x1000, 0x10'0000, 0x1000'0000, 0x10'0000'0000};
    for (const std::uint64_t jump : jumps) execute(address += jump);
    for (unsigned i = 0; i < 20; ++i) execute(address);
    records.push_back({address + 1, 1, 7});  // another site than predicted, and `aux`
    RecordEncoder encoder;
    encoder.begin_part(0, records.size(), 0, {});
    encoder.add(records, sites);
    const std::vector<std::byte> content = encoder.take();
    trace_records_t head;
    std::memcpy(&head, content.data(), sizeof head);
    CHECK(head.coding == TRACE_CODING_SHORT);
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(content.data()) + sizeof head;
    const std::uint8_t* at = begin;
    const auto stream = [&](std::uint32_t bytes) {
        at += bytes;
        return std::vector<unsigned>(at - bytes, at);
    };
    stream(head.part_bytes);
    const std::vector<unsigned> runs = stream(head.run_bytes), flags = stream(head.flag_bytes);
    const std::vector<unsigned> site_bytes = stream(head.site_bytes);
    const std::vector<unsigned> values = stream(head.value_bytes), aux = stream(head.aux_bytes);
    std::vector<unsigned> kinds;
    for (const unsigned flag : flags) kinds.push_back(flag / TRACE_MANY);
    CHECK(kinds.size() >= 8);
    // The last one is of kind 0, after at least 38 records, and says that site and `aux` differ.
    CHECK(flags[flags.size() - 2] == TRACE_MANY - 1);
    CHECK(flags.back() == (TRACE_MISS_SITE | TRACE_MISS_AUX | TRACE_VALUE_LAST));
    REQUIRE(runs.size() == 1);
    CHECK(runs[0] == 38 - (TRACE_MANY - 1));
    CHECK(site_bytes.size() >= 1);
    CHECK(values.back() == 2);  // +1, zigzag
    CHECK(aux == std::vector<unsigned>{7});
    // From the last address with 4 and 8 bytes: the larger jumps.
    CHECK(std::count(kinds.begin(), kinds.end(), 8U) == 1);
    CHECK(std::count(kinds.begin(), kinds.end(), 9U) == 1);
    const trace_chunk_t chunk = chunk_of(records.size(), content);
    CHECK(same(plainly(chunk, content, sites), records));
}

TEST_CASE("an unknown coding, and an unknown kind of a difference, are damage") {
    const std::vector<trace_site_t> sites{{0, 0, TRACE_SITE_BLOCK, 0}, {0, 8, TRACE_SITE_READ, 0}};
    const std::vector<trace_record_t> records{{0, 0, 0}, {0x1234, 1, 0}, {0, 0, 0}};
    RecordEncoder encoder;
    encoder.begin_part(0, records.size(), 0, {});
    encoder.add(records, sites);
    std::vector<std::byte> content = encoder.take();
    trace_records_t head;
    std::memcpy(&head, content.data(), sizeof head);
    const trace_chunk_t chunk = chunk_of(records.size(), content);
    REQUIRE(plainly(chunk, content, sites).size() == records.size());
    const std::size_t flags = sizeof head + head.part_bytes + head.run_bytes;
    std::vector<std::byte> damaged = content;
    damaged[flags] = std::byte{TRACE_MANY * TRACE_MISS_KINDS + 1};
    RecordDecoder decoder(sites);
    std::vector<trace_record_t> decoded(records.size());
    CHECK(decoded_plainly(chunk, damaged, sites) == 1);
    REQUIRE(decoder.begin(chunk, damaged));
    CHECK(decoder.next(decoded) == 1);
    head.coding = TRACE_CODING_SHORT + 1;
    std::memcpy(content.data(), &head, sizeof head);
    CHECK(!decoder.begin(chunk, content));
}

}  // namespace record_decoder_test
