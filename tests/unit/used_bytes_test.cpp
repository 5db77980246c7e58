// The used-bytes profiler's cache against a model that is written for plainness, and its accounts.
#include "plugins/used_bytes/report.h"
#include "plugins/used_bytes/simulator.h"

#include "assay/client.h"
#include "framework/support/text.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <bitset>
#include <cstdint>
#include <list>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace used_bytes_test {

using namespace used_bytes;
using cache::Geometry;

namespace {

using Records = std::vector<trace_record_t>;
using Sites = std::vector<trace_site_t>;
using Markers = std::vector<trace_marker_t>;

bool same_usage(const Usage& a, const Usage& b) {
    return a.lines == b.lines && a.again == b.again && a.used == b.used;
}

using ByFetcher = std::map<Fetcher, Usage>;

// Each set a list of lines, the most recent first.
class Model {
  public:
    explicit Model(const Geometry& geometry) : geometry_(geometry) {}

    void reference(const Fetcher& by, std::uint64_t address, std::uint64_t bytes) {
        for (const std::uint64_t end = address + bytes; address < end;) {
            Line& line = touch(by, address / geometry_.line);
            do line.bytes.set(address++ % geometry_.line);
            while (address < end && address % geometry_.line != 0);
        }
    }
    ByFetcher finish() {
        for (auto& [set, lines] : sets_)
            for (const Line& line : lines) usage_[line.by].used += line.bytes.count();
        return usage_;
    }

  private:
    struct Line {
        std::uint64_t number;
        Fetcher by;
        std::bitset<4096> bytes;  // of the longest line
    };

    Line& touch(const Fetcher& by, std::uint64_t number) {
        std::list<Line>& set = sets_[number % geometry_.sets()];
        auto line =
            std::find_if(set.begin(), set.end(), [&](const Line& l) { return l.number == number; });
        if (line == set.end()) {
            if (set.size() == geometry_.ways) {
                usage_[set.back().by].used += set.back().bytes.count();
                set.pop_back();
            }
            line = set.insert(set.begin(), {number, by, {}});
            ++usage_[by].lines;
            if (!seen_.insert(number).second) ++usage_[by].again;
        }
        set.splice(set.begin(), set, line);
        return set.front();
    }

    Geometry geometry_;
    std::map<std::uint64_t, std::list<Line>> sets_;
    std::set<std::uint64_t> seen_;
    ByFetcher usage_;
};

Geometry shape(std::uint64_t sets, std::uint32_t ways, std::uint32_t line) {
    return {sets * ways * line, ways, line};
}

bool is_reference(const trace_site_t& site) {
    return (site.kind >= TRACE_SITE_READ && site.kind <= TRACE_SITE_MODIFY) ||
           site.kind == TRACE_SITE_CODE;
}

// Of each kind and size, an instruction for each; those of which code is fetched have data, too.
Sites every_site() {
    Sites sites;
    for (const std::uint16_t bytes : {1, 3, 15, 64, 200})
        sites.push_back({.instr = static_cast<std::uint32_t>(sites.size()),
                         .bytes = bytes,
                         .kind = TRACE_SITE_CODE,
                         .operand = 0});
    for (const std::uint8_t kind : {TRACE_SITE_READ, TRACE_SITE_WRITE, TRACE_SITE_MODIFY})
        for (const std::uint16_t bytes : {1, 2, 4, 8, 10, 16, 32, 64, 108, 512})
            sites.push_back({.instr = static_cast<std::uint32_t>(sites.size()) - 5,
                             .bytes = bytes,
                             .kind = kind,
                             .operand = 0});
    for (const std::uint8_t kind : {TRACE_SITE_FETCH, TRACE_SITE_COUNT, TRACE_SITE_CALL})
        sites.push_back({.instr = 0, .bytes = 8, .kind = kind, .operand = 0});
    return sites;
}

// What a driver with a filter makes of the records of one buffer, by trace_capture_footprints().
struct Filtered {
    Records records;
    std::vector<std::uint64_t> footprints;
};

Filtered filter(const Sites& sites, std::span<const trace_record_t> all, std::uint64_t sets) {
    Filtered out{{}, std::vector<std::uint64_t>(sets)};
    std::vector<std::uint64_t> recent(sets, UINT64_MAX);
    const auto footprint = static_cast<std::uint32_t>(sites.size() - 1);
    for (const trace_record_t& record : all) {
        const trace_site_t& site = sites[record.site];
        const bool filtered = is_reference(site);
        const std::uint64_t first = record.value / 64, last = (record.value + site.bytes - 1) / 64;
        if (filtered && first == last && recent[first % sets] == first) {
            for (std::uint64_t i = 0; i < site.bytes; ++i)
                out.footprints[first % sets] |= std::uint64_t{1} << (record.value + i) % 64;
            continue;
        }
        for (std::uint64_t line = first; filtered && line <= last; ++line) {
            const std::uint64_t set = line % sets;
            out.records.push_back({std::exchange(out.footprints[set], 0), footprint,
                                   static_cast<std::uint32_t>(set * 64)});
            recent[set] = line;
        }
        out.records.push_back(record);
    }
    return out;
}

Records random_records(const Sites& sites, std::size_t count, unsigned seed) {
    std::mt19937_64 random(seed);
    Records records;
    std::uint64_t address = 0;
    while (records.size() < count) {
        // Mostly nearby, and often the same line again.
        if (random() % 3 == 0) address = 0x10000 * (random() % 3) + random() % 8192;
        const auto site = static_cast<std::uint32_t>(random() % sites.size());
        records.push_back({.value = address + random() % 8, .site = site, .aux = 0});
    }
    return records;
}

// Of one calling context.
void check_same(const Accounts& accounts, const ByFetcher& expected) {
    ByFetcher found;
    Usage code;
    for (const Point& point : accounts.points()) {
        if (point.usage.lines != 0) found[point.by] += point.usage;
        if (point.by.code) code += point.usage;
    }
    REQUIRE(found.size() == expected.size());
    bool same = true;
    for (const auto& [by, usage] : expected) same &= same_usage(usage, found[by]);
    CHECK(same);
    CHECK(same_usage(accounts.code(), code));
}

// A cache of the document's kind, and a program that reads `bytes` at addresses.
class Program {
  public:
    explicit Program(const Geometry& geometry, std::optional<SectionChoice> choice = {})
        : simulator(geometry, std::move(choice)) {}

    void read(std::uint64_t address, std::uint16_t bytes, std::uint32_t context = 0) {
        const auto site = static_cast<std::uint32_t>(sites_.size());
        sites_.push_back({.instr = site, .bytes = bytes, .kind = TRACE_SITE_READ, .operand = 0});
        records_.push_back({address, site, 0});
        contexts_.push_back(context);
    }
    void say(std::uint64_t operation, const char* name, const char* owner = "",
             std::uint64_t address = 0, std::uint64_t bytes = 0) {
        markers_.push_back({records_.size(), operation, address, bytes, name, owner});
    }
    void run(std::uint32_t thread = 0) {
        simulator.process(sites_, {thread, records_, contexts_, markers_, {}});
        records_.clear();
        contexts_.clear();
        markers_.clear();
    }
    const Accounts& accounts() const { return simulator.accounts(); }

    Simulator simulator;

  private:
    Sites sites_;
    Records records_;
    std::vector<std::uint32_t> contexts_;
    Markers markers_;
};

}  // namespace

TEST_CASE("used bytes: every shape agrees with the model") {
    const Sites sites = every_site();
    unsigned seed = 1;
    for (const std::uint32_t line : {16U, 32U, 64U, 128U, 4096U})
        for (const std::uint32_t ways : {1U, 2U, 3U, 8U})
            for (const std::uint64_t sets : {1U, 4U, 64U, 2048U}) {
                CAPTURE(line);
                CAPTURE(ways);
                CAPTURE(sets);
                const Geometry geometry = shape(sets, ways, line);
                const Records records = random_records(sites, 3000, seed++);
                Model model(geometry);
                Simulator simulator(geometry, {});
                for (std::size_t at = 0; at < records.size(); at += 701) {
                    const std::size_t count = std::min<std::size_t>(701, records.size() - at);
                    simulator.process(sites, {0, {records.data() + at, count}, {}, {}, {}});
                }
                simulator.finish();
                for (const trace_record_t& record : records) {
                    const trace_site_t& site = sites[record.site];
                    if (is_reference(site))
                        model.reference({site.instr, site.kind == TRACE_SITE_CODE}, record.value,
                                        site.bytes);
                }
                check_same(simulator.accounts(), model.finish());
            }
}

TEST_CASE("used bytes: nothing is lost by the driver's filter") {
    Sites sites = every_site();
    sites.push_back({.instr = 0, .bytes = 0, .kind = TRACE_SITE_FOOTPRINT, .operand = 0});
    const Sites of_program = every_site();
    unsigned seed = 1;
    for (const std::uint32_t ways : {1U, 3U, 8U})
        for (const std::uint64_t sets : {1U, 4U, 64U, 8192U})
            for (std::uint64_t filter_sets = 1; filter_sets <= std::min<std::uint64_t>(sets, 64);
                 filter_sets *= 4) {
                CAPTURE(ways);
                CAPTURE(sets);
                CAPTURE(filter_sets);
                const Records records = random_records(of_program, 3000, seed++);
                Simulator all(shape(sets, ways, 64), {}), some(shape(sets, ways, 64), {});
                for (std::size_t at = 0; at < records.size(); at += 701) {
                    const std::span<const trace_record_t> part(
                        records.data() + at, std::min<std::size_t>(701, records.size() - at));
                    all.process(sites, {0, part, {}, {}, {}});
                    const Filtered filtered = filter(sites, part, filter_sets);
                    some.process(sites, {0, filtered.records, {}, {}, filtered.footprints});
                }
                all.finish();
                some.finish();
                ByFetcher expected;
                for (const Point& point : all.accounts().points())
                    if (point.usage.lines != 0) expected[point.by] += point.usage;
                check_same(some.accounts(), expected);
            }
}

TEST_CASE("used bytes: a reference across two lines fetches both, and uses its part of each") {
    Program program(shape(1, 2, 64));
    program.read(0x1000 - 6, 8);
    program.run();
    program.simulator.finish();
    CHECK(program.accounts().total().lines == 2);
    CHECK(program.accounts().total().used == 8);
    CHECK(program.accounts().total().again == 0);
}

TEST_CASE("used bytes: one larger than the cache evicts its own lines") {
    Program program(shape(1, 1, 64));
    program.read(0x1000, 256);
    program.read(0x1000, 4);
    program.run();
    program.simulator.finish();
    CHECK(program.accounts().total().lines == 5);
    CHECK(program.accounts().total().again == 1);
    CHECK(program.accounts().total().used == 260);
}

TEST_CASE("used bytes: the last addresses there are") {
    Program program(shape(1, 1, 64));
    program.read(UINT64_MAX - 3, 4);
    program.read(UINT64_MAX - 3, 64);  // impossible
    program.run();
    program.simulator.finish();
    CHECK(program.accounts().total().lines == 1);
    CHECK(program.accounts().total().used == 4);
}

TEST_CASE("used bytes: what is used late counts for who fetched the line") {
    Program program(shape(64, 1, 64));
    program.read(0x1000, 4, 7);
    program.read(0x1020, 16, 8);
    program.run(3);
    program.read(0x1000 + 64 * 64, 1, 9);
    program.run(4);
    const auto& points = program.accounts().points();
    REQUIRE(points.size() == 2);
    CHECK(points[0].context == 7);
    CHECK(points[0].usage.used == 20);
    CHECK(points[1].context == 9);
    CHECK(points[1].usage.used == 0);  // in the cache
    program.simulator.finish();
    CHECK(points[1].usage.used == 1);
    CHECK(program.accounts().threads().at(3).used == 20);
    CHECK(program.accounts().threads().at(4).used == 1);
}

TEST_CASE("used bytes: sections in one another, chosen by name and number") {
    for (const char* chosen : {"", "in", "in#2", "out", "none"}) {
        CAPTURE(chosen);
        std::optional<SectionChoice> choice;
        if (*chosen) choice = parse_section(chosen);
        Program program(shape(64, 8, 64), choice);
        program.read(0x0, 4);
        program.say(ASSAY_BEGIN_PHASE, "out");
        program.read(0x1000, 4);
        for (int i = 0; i < 2; ++i) {
            program.say(ASSAY_BEGIN_PHASE, "in");
            program.read(0x2000 + 0x100 * i, 8);
            program.say(ASSAY_END_PHASE, "in");
        }
        program.run();
        program.say(ASSAY_END_PHASE, "out");
        program.read(0x3000, 4);
        program.say(ASSAY_END_PHASE, "out");
        program.run();
        program.simulator.finish();
        const auto& all = program.accounts().sections().all();
        REQUIRE(all.size() == 4);
        CHECK(same_usage(all[1].usage, {3, 0, 20}));
        CHECK(same_usage(all[2].usage, {1, 0, 8}));
        CHECK(all[3].occurrence == 2);
        CHECK(program.accounts().sections().stray_ends() == 1);
        const std::map<std::string, std::uint64_t> used{
            {"", 28}, {"in", 16}, {"in#2", 8}, {"out", 20}, {"none", 0}};
        CHECK(program.accounts().total().used == used.at(chosen));
    }
}

TEST_CASE("used bytes: a section's lines are unique within it") {
    Program program(shape(1, 1, 64));
    program.read(0x1000, 4);
    for (int i = 0; i < 2; ++i) {
        program.say(ASSAY_BEGIN_PHASE, "s");
        program.read(0x2000, 4);
        program.read(0x1000, 4);
        program.read(0x2000, 4);
        program.say(ASSAY_END_PHASE, "s");
        program.read(0x1000, 4);
    }
    program.run();
    const auto& all = program.accounts().sections().all();
    CHECK(same_usage(all[1].usage, {3, 1, 12}));
    CHECK(all[2].usage.lines == 3);
    CHECK(all[2].usage.again == 1);
    CHECK(program.accounts().total().again == 9 - 2);
}

TEST_CASE("used bytes: what lies in several sections of one name counts once for it") {
    Program program(shape(64, 8, 64));
    for (const char* name : {"r", "r", "other", "r"}) program.say(ASSAY_BEGIN_PHASE, name);
    program.read(0x1000, 4);
    program.say(ASSAY_END_PHASE, "other");  // and what is in it
    program.read(0x2000, 8);
    for (int i = 0; i < 2; ++i) program.say(ASSAY_END_PHASE, "r");
    program.say(ASSAY_BEGIN_PHASE, "r");  // another time
    program.read(0x3000, 16);
    program.run();
    program.simulator.finish();

    const Sections& sections = program.accounts().sections();
    REQUIRE(sections.all().size() == 6);
    std::vector<bool> within;
    for (std::uint32_t i = 1; i < 6; ++i) within.push_back(sections.lies_in_its_name(i));
    CHECK(within == std::vector<bool>{false, true, false, true, false});

    const std::string report = short_report({program.accounts(), "", 64, {}});
    const std::size_t row = report.find("r (4 times)");
    REQUIRE(row != std::string::npos);
    std::istringstream numbers(report.substr(row + std::string("r (4 times)").size()));
    std::string read, unique, again, used;
    numbers >> read >> unique >> again >> used;
    CHECK(read == "192");
    CHECK(unique == "192");
    CHECK(used == "28");
}

TEST_CASE("used bytes: sections that do not end are told apart up to a depth") {
    Sections sections;
    std::uint32_t at = Sections::kNone;
    for (std::uint32_t i = 0; i < Sections::kMostDepth; ++i) at = sections.begin(at, "open", 0);
    const std::uint32_t deepest = at;
    for (int i = 0; i < 3; ++i) {
        at = sections.begin(at, "too deep", 0);
        CHECK(at == deepest);
    }
    for (int i = 0; i < 3; ++i) at = sections.end(at, "too deep");
    CHECK(at == deepest);
    CHECK(sections.begin(at, "too deep", 0) == deepest);  // does not end, but "open" does
    CHECK(sections.left_out() == 4);
    CHECK(sections.all().size() == Sections::kMostDepth + 1);
    CHECK(sections.stray_ends() == 0);
    at = sections.end(at, "open");
    CHECK(at == sections.all()[deepest].around);
    CHECK(sections.begin(at, "again", 0) == deepest + 1);
    CHECK(sections.begin(Sections::kNone, "another thread's", 1) == deepest + 2);
    CHECK(sections.end_all(at) == Sections::kNone);
    for (std::uint32_t i = 1; i <= deepest; ++i) CHECK(sections.all()[i].seen == nullptr);
    CHECK(sections.all()[deepest + 2].seen != nullptr);
}

TEST_CASE("used bytes: names of sections") {
    CHECK(parse_section("a b").name == "a b");
    CHECK(parse_section("a b").occurrence == 0);
    CHECK(parse_section("a#12").name == "a");
    CHECK(parse_section("a#12").occurrence == 12);
    CHECK(parse_section("C#").name == "C#");
    CHECK(parse_section("a#0").name == "a#0");
    CHECK(parse_section("a#1#2").name == "a#1");
}

TEST_CASE("used bytes: arenas") {
    Arenas arenas;
    CHECK(arenas.find(0x1000) == Arenas::kOutside);
    arenas.add(0x1000, 0x1000, "o", "a");
    arenas.add(0x3000, 0x1000, "o", "b");
    arenas.add(0x8000, 0x1000, "o", "a");
    CHECK(arenas.names().size() == 3);
    CHECK(arenas.find(0xfff) == 0);
    CHECK(arenas.find(0x1000) == 1);
    CHECK(arenas.find(0x1fff) == 1);
    CHECK(arenas.find(0x2000) == 0);
    CHECK(arenas.find(0x3000) == 2);
    CHECK(arenas.find(0x8001) == 1);
    arenas.add(0x1800, 0x2000, "p", "c");  // over the end of one and the beginning of another
    CHECK(arenas.find(0x17ff) == 1);
    CHECK(arenas.find(0x1800) == 3);
    CHECK(arenas.find(0x37ff) == 3);
    CHECK(arenas.find(0x3800) == 2);
    arenas.add(0x8400, 0x100, "p", "c");  // within one
    CHECK(arenas.find(0x83ff) == 1);
    CHECK(arenas.find(0x8400) == 3);
    CHECK(arenas.find(0x8500) == 1);
    arenas.remove(0x8400);
    CHECK(arenas.find(0x8400) == 0);
    CHECK(arenas.find(0x8500) == 1);
    arenas.remove(0x9999);
    arenas.add(UINT64_MAX - 10, 100, "p", "end");
    CHECK(arenas.find(UINT64_MAX - 1) == 4);
    arenas.add(0x20000, 0, "p", "nothing");
    CHECK(arenas.find(0x20000) == 0);
}

TEST_CASE("used bytes: nothing is left of an arena's region that is removed") {
    Arenas arenas;
    arenas.add(0x1000, 0x4000, "o", "outer");
    arenas.add(0x2000, 0x1000, "o", "inner");
    arenas.remove(0x1000);
    CHECK(arenas.find(0x1000) == 0);
    CHECK(arenas.find(0x2000) == 2);
    CHECK(arenas.find(0x3000) == 0);
    arenas.remove(0x2000);
    CHECK(arenas.find(0x2000) == 0);
    // Its beginning has become another one's.
    arenas.add(0x2000, 0x2000, "o", "right");
    arenas.add(0x1000, 0x2000, "o", "left");
    arenas.remove(0x2000);
    CHECK(arenas.find(0x2000) == 4);
    CHECK(arenas.find(0x3000) == 0);
    arenas.remove(0x1000);
    // At one address, the last one is removed first.
    arenas.add(0x1000, 0x2000, "o", "outer");
    arenas.add(0x1000, 0x1000, "o", "inner");
    arenas.remove(0x1000);
    CHECK(arenas.find(0x1000) == 0);
    CHECK(arenas.find(0x2000) == 1);
    arenas.remove(0x1000);
    CHECK(arenas.find(0x2000) == 0);
    arenas.remove(0x1000);
}

TEST_CASE("used bytes: an arena counts what is fetched while the memory belongs to it") {
    Program program(shape(1, 1, 64));
    program.read(0x1000, 4);
    program.say(ASSAY_REGISTER_REGION, "a", "o", 0x1000, 0x1000);
    program.read(0x2000, 4);
    for (int i = 0; i < 2; ++i) {
        program.read(0x1000, 8);
        program.read(0x1040, 16);
    }
    program.say(ASSAY_UNREGISTER_REGION, "", "", 0x1000);
    program.read(0x1000, 32);
    program.run();
    program.simulator.finish();
    REQUIRE(program.accounts().by_arena().size() == 2);
    CHECK(same_usage(program.accounts().by_arena()[1].usage, {4, 2, 48}));
    CHECK(same_usage(program.accounts().by_arena()[0].usage, {3, 0, 40}));
    CHECK(program.accounts().by_arena()[0].earlier == Histogram{{1, 1}});
    CHECK(program.accounts().by_arena()[1].earlier == Histogram{{2, 1}});
    CHECK(program.accounts().total().again == 4);
}

TEST_CASE("used bytes: who fetched and evicted the lines that are read most often") {
    Program program(shape(1, 1, 64));
    for (int i = 0; i < 6; ++i) {
        program.read(0x1000, 4);
        program.read(0x2000, 4);
        if (i % 3 == 0) program.read(0x3000, 4);
    }
    program.run();
    const auto lines = program.accounts().by_arena()[0].most_fetched.sorted();
    REQUIRE(lines.size() == 3);
    CHECK(lines[0].line == 0x1000 / 64);
    CHECK(lines[0].fetches == 6);
    CHECK(lines[2].line == 0x3000 / 64);
    CHECK(lines[2].fetches == 2);
    // The reads are points 0, 1, 2 ...; that of 0x3000 is number 2, and the second one 9.
    CHECK(lines[2].stays[1].fetched_by == 2);
    CHECK(lines[2].stays[1].evicted_by == 3);
    CHECK(lines[2].stays[2].fetched_by == 9);
    CHECK(program.accounts().evicted_last(0x3000 / 64) == 10);
    CHECK(lines[0].stays[6 % MostFetched::kStays].fetched_by == 12);
    CHECK(lines[0].stays[5 % MostFetched::kStays].evicted_by == 11);
    CHECK(lines[0].stays[3 % MostFetched::kStays].fetched_by == 5);
    CHECK(program.accounts().evicted_last(0x2000 / 64) == kNoPoint);
    CHECK(program.accounts().evicted_last(0x9000 / 64) == kNoPoint);
}

TEST_CASE("used bytes: the report shows the fetches that are known of a line") {
    Program program(shape(1, 1, 64));
    const auto read = [&](std::uint64_t line) { program.read(line * 64, 4); };
    for (int i = 0; i < 2; ++i)
        for (std::uint64_t line = 1; line <= MostFetched::kLines + 1; ++line) read(line);
    read(MostFetched::kLines + 1 + 0x100);  // which evicts the last one
    read(MostFetched::kLines + 1);          // gets in for a line that was read twice
    program.run();
    const auto lines = program.accounts().by_arena()[0].most_fetched.sorted();
    REQUIRE(lines.size() == MostFetched::kLines);
    CHECK(lines[0].fetches == 3);
    CHECK(lines[0].known() == 2);
    CHECK(lines[1].fetches == 2);
    CHECK(lines[1].known() == 2);
    const auto stack = [](PointNumber point) {
        return std::vector<std::string>{"point " + std::to_string(point)};
    };
    const std::string report = long_report({program.accounts(), "", 64, stack});
    CHECK(report.find("  Line at 0x440, read 3 times; the last 2:\n"
                      "    2. read at\n         point 33\n"
                      "       and evicted by\n         point 34\n"
                      "    3. read at\n         point 35\n"
                      "       and not evicted\n") != std::string::npos);
    CHECK(report.find("read at\n       and") == std::string::npos);
}

TEST_CASE("used bytes: only the lines that are read most often are remembered") {
    MostFetched most;
    LineHistory history;
    const auto fetch = [&](std::uint64_t line, std::uint32_t before) {
        history.fetches_in_arena = before;
        most.fetched_again(line, history, 0);
    };
    for (std::uint64_t line = 0; line < 100; ++line)
        for (std::uint32_t before = 1; before <= line; ++before) fetch(line, before);
    const auto lines = most.sorted();
    REQUIRE(lines.size() == MostFetched::kLines);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        CHECK(lines[i].line == 99 - i);
        CHECK(lines[i].fetches == 100 - i);
    }
}

}  // namespace used_bytes_test
