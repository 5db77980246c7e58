// Work in two stages.
#include "plugins/cache/pipeline.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

namespace pipeline_test {

namespace {

struct Piece {
    int number = 0, square = 0;
};

TEST_CASE("pieces come out of both stages in order") {
    for (const bool threaded : {false, true}) {
        std::vector<int> first, second;
        cache::Pipeline<Piece> pipeline(
            threaded,
            [&](Piece& piece) {
                first.push_back(piece.number);
                piece.square = piece.number * piece.number;
            },
            [&](Piece& piece) {
                CHECK(piece.square == piece.number * piece.number);
                second.push_back(piece.number);
            });
        std::vector<int> all;
        for (int i = 0; i < 500; ++i) {
            auto piece = pipeline.empty();
            piece->number = i;
            pipeline.put(std::move(piece));
            all.push_back(i);
            if (i == 350) pipeline.do_without_thread();
            if (i % 100 != 0) continue;
            pipeline.settle();
            CHECK(first == all);
        }
        pipeline.finish();
        CHECK(first == all);
        CHECK(second == all);
    }
}

TEST_CASE("what the first stage throws comes out of the pipeline") {
    for (const bool threaded : {false, true}) {
        cache::Pipeline<Piece> pipeline(
            threaded, [](Piece&) { throw std::runtime_error("no room"); }, [](Piece&) {});
        const auto all = [&] {
            pipeline.put(pipeline.empty());
            pipeline.finish();
        };
        CHECK_THROWS_WITH_AS(all(), "no room", std::runtime_error);
    }
}

TEST_CASE("a pipeline that is not finished can go") {
    for (int i = 0; i < 20; ++i) {
        cache::Pipeline<Piece> pipeline(
            true, [](Piece&) {}, [](Piece&) {});
        for (int piece = 0; piece < i; ++piece) pipeline.put(pipeline.empty());
    }
}

}  // namespace

}  // namespace pipeline_test
