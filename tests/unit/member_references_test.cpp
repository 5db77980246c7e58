// Which member each instruction of a program refers to, from debug information and its code.
#include "framework/data_references/member_references.h"
#include "framework/collector/profilers/source_places.h"
#include "tests/unit/compiled_programs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace member_references_test {

namespace {

using namespace assay::data_references;
using Kind = MemberReference::Kind;

struct Found {
    std::vector<std::uint64_t> addresses;
    std::vector<MemberReference> references;
    TypeTree tree;

    std::string path(std::uint32_t node) const {
        const TypeNode& at = tree.nodes()[node];
        return at.parent == 0 ? at.name : path(at.parent) + "." + at.name;
    }
    // Each once, in the order of the alphabet.
    std::string paths() const {
        std::set<std::string> paths;
        for (const MemberReference& reference : references)
            if (reference.kind == Kind::kTyped) paths.insert(path(reference.node));
        std::string text;
        for (const std::string& one : paths) text += (text.empty() ? "" : ", ") + one;
        return text;
    }
    std::size_t count(Kind kind) const {
        return static_cast<std::size_t>(
            std::count_if(references.begin(), references.end(),
                          [&](const MemberReference& r) { return r.kind == kind; }));
    }
};

// Of all instructions of a function.
Found found_in(const CompiledPrograms& folder, const std::string& function) {
    Found found;
    std::istringstream listing(
        folder.run("objdump -d --no-show-raw-insn --disassemble=" + function + " program"));
    for (std::string line; std::getline(listing, line);) {
        const std::size_t colon = line.find(":\t");
        if (colon != std::string::npos)
            found.addresses.push_back(std::stoull(line.substr(0, colon), nullptr, 16));
    }
    REQUIRE(!found.addresses.empty());
    found.references = MemberReferences(folder / "program", found.tree, "").find(found.addresses);
    return found;
}

struct Compiled : CompiledPrograms {
    explicit Compiled(const std::string& text, const std::string& flags = "-O2 -g") {
        write("program.cpp", text);
        run("c++ " + flags + " -o program program.cpp");
    }
};

constexpr const char* kList = R"(
struct Inner { int low, high; };
struct Node { long key; Node* next; Inner inner; Inner several[4]; void* data; };
extern "C" __attribute__((noinline)) long walk(const Node* n) {
    long sum = 0;
    for (; n; n = n->next) sum += n->next ? n->next->inner.high : 0;
    return sum;
}
extern "C" __attribute__((noinline)) long indexed(const Node* n, int i) { return n[i].several[i & 3].low; }
extern "C" __attribute__((noinline)) Node* made() { static Node node; return &node; }
extern "C" __attribute__((noinline)) long called(long a) { return made()->key + a; }
Node table[8];
extern "C" __attribute__((noinline)) long global(int i) { return table[i].inner.low + (long)table[2].data; }
int main(int argc, char**) { return walk(table) + indexed(table, argc) + called(argc) + global(argc); }
)";

}  // namespace

TEST_CASE("members are found through pointers, in arrays and of what calls return") {
    for (const char* flags : {"-O2 -g", "-O1 -g -gdwarf-4", "-O0 -g", "-O2 -g -fno-pie -no-pie"}) {
        CAPTURE(flags);
        const Compiled folder(kList, flags);
        CHECK(found_in(folder, "walk").paths() == "Node.inner.high, Node.next");
        CHECK(found_in(folder, "indexed").paths() == "Node.several.low");
        CHECK(found_in(folder, "called").paths() == "Node.key");
        CHECK(found_in(folder, "global").paths() == "Node.data, Node.inner.low");
        CHECK(found_in(folder, "walk").count(Kind::kUnknown) == 0);
    }
}

TEST_CASE("bases, unions and bit-fields have their names") {
    const Compiled folder(R"(
struct Base { virtual ~Base() = default; int id = 0; };
struct Derived : Base { int own = 0; union { long whole; char* text; }; unsigned a : 3, b : 13, c : 16; };
extern "C" __attribute__((noinline)) int sum(const Derived* d) { return d->id + d->own; }
extern "C" __attribute__((noinline)) long either(const Derived* d) { return d->whole; }
extern "C" __attribute__((noinline)) void set(Derived* d, int n) { d->c = n; }
int main(int argc, char**) { Derived d; set(&d, argc); return sum(&d) + either(&d); }
)");
    CHECK(found_in(folder, "sum").paths() == "Derived.Base.id, Derived.own");
    CHECK(found_in(folder, "either").paths() == "Derived.(union).whole");
    const Found set = found_in(folder, "set");
    CHECK(set.paths() == "Derived.c");
    const auto& nodes = set.tree.nodes();
    const auto field = std::find_if(nodes.begin(), nodes.end(),
                                    [](const TypeNode& node) { return node.name == "c"; });
    REQUIRE(field != nodes.end());
    CHECK(field->bits == 16);
    CHECK(field->first_bit == 0);
    CHECK(field->type == "unsigned int");
}

TEST_CASE("spilled pointers keep their types, and plain variables of the stack are apart") {
    const Compiled folder(R"(
struct Pair { long first, second; };
long other(long, Pair*);
extern "C" __attribute__((noinline)) long spill(Pair* p) {
    asm volatile("" : : : "rbx", "rbp", "r12", "r13", "r14", "r15");
    long before = p->first;
    asm volatile("" : : : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r11",
                 "r12", "r13", "r14", "r15");
    return before + p->second;
}
extern "C" __attribute__((noinline)) long local(long n) {
    volatile Pair pair{n, n};
    volatile long plain = n;
    return pair.second + plain;
}
int main(int argc, char**) { Pair pair{argc, argc}; return spill(&pair) + local(argc); }
)");
    const Found spill = found_in(folder, "spill");
    CHECK(spill.paths() == "Pair.first, Pair.second");
    CHECK(spill.count(Kind::kUnknown) == 0);
    CHECK(spill.count(Kind::kStack) > 2);
    const Found local = found_in(folder, "local");
    CHECK(local.paths() == "Pair.first, Pair.second");
    CHECK(local.count(Kind::kStack) >= 2);
}

TEST_CASE("nothing is claimed where paths disagree, or without debug information") {
    const Compiled folder(R"(
struct A { long a; };
struct B { long b; };
extern "C" __attribute__((noinline)) long either(bool which, A* a, B* b) {
    void* chosen = which ? (void*)a : (void*)b;
    asm volatile("" : "+r"(chosen));
    return *(long*)chosen;
}
int main(int argc, char**) { A a{1}; B b{2}; return either(argc > 1, &a, &b); }
)");
    const Found found = found_in(folder, "either");
    CHECK(found.paths().find("A.a") == std::string::npos);
    CHECK(found.paths().find("B.b") == std::string::npos);
    folder.run("strip -g program");
    CHECK(found_in(folder, "either").count(Kind::kNone) == found.addresses.size());
}

TEST_CASE("an empty base class is charged with nothing") {
    const Compiled folder(R"(
#include <memory>
struct Node { long pad[7], v; };
std::unique_ptr<Node> table[4];
extern "C" __attribute__((noinline)) long get(int i) { return table[i]->v; }
int main(int argc, char**) { table[0] = std::make_unique<Node>(); return get(argc - 1); }
)");
    const std::string paths = found_in(folder, "get").paths();
    CHECK(paths.starts_with("Node.v, std::unique_ptr<Node"));
    CHECK(paths.ends_with("std::_Head_base<0, Node*, false>._M_head_impl"));
}

TEST_CASE("what lies behind the object of a pointer is a neighbour only in an array") {
    const Compiled folder(R"(
struct Head { Head *next, *previous; };
struct Item { Head head; long key, value; };
extern "C" __attribute__((noinline)) long listed(Head* list) {
    long sum = 0;
    for (Head* x = list->next; x != list; x = x->next) sum += reinterpret_cast<Item*>(x)->value;
    return sum;
}
extern "C" __attribute__((noinline)) long array(const Item* items, int n) {
    long sum = 0;
    for (int i = 0; i + 1 < n; i += 2) sum += items[i].key - items[i + 1].value;
    return sum;
}
extern "C" __attribute__((noinline)) long untyped(void* p, int n) {
    Item* items = static_cast<Item*>(p);
    long sum = 0;
    for (int i = 0; i < n; ++i) sum += items[i].key;
    return sum;
}
int main(int argc, char**) {
    Item item{{&item.head, &item.head}, argc, argc};
    return listed(&item.head) + array(&item, argc) + untyped(&item, argc);
}
)");
    CHECK(found_in(folder, "listed").paths() == "Head.next");
    CHECK(found_in(folder, "array").paths() == "Item.key, Item.value");
    // Debug information has the variable only where the loop begins.
    CHECK(found_in(folder, "untyped").paths() == "Item.key");
}

TEST_CASE("a pointer from a union has a type if all of the union's pointers have that") {
    const Compiled folder(R"(
struct A { long a; };
struct B { long b; };
struct Either { int kind; union { A* a; B* b; }; };
struct Same { int kind; union { A* a; long number; const A* constant; }; };
extern "C" __attribute__((noinline)) long either(Either* e) { return e->b->b; }
extern "C" __attribute__((noinline)) long same(Same* s) { return s->a->a; }
int main() { A a{1}; Either e{1, {&a}}; Same s{1, {&a}}; return either(&e) + same(&s); }
)");
    CHECK(found_in(folder, "either").paths() == "Either.(union).a");
    CHECK(found_in(folder, "same").paths() == "A.a, Same.(union).a");
}

TEST_CASE("damaged debug information of functions is survived") {
    const Compiled folder(kList);
    const std::string bytes = read_bytes(folder / "program");
    const std::vector<std::uint64_t> addresses = found_in(folder, "walk").addresses;
    const std::size_t begin = bytes.size() / 3;
    std::uint32_t random = 54321;
    for (int round = 0; round < 200; ++round) {
        std::string damaged = bytes;
        for (int i = 0; i < 20; ++i) {
            random = random * 1664525 + 1013904223;
            damaged[begin + (random >> 8) % (bytes.size() - begin)] = static_cast<char>(random);
        }
        write_bytes(folder / "damaged", damaged);
        TypeTree tree;
        const auto found = MemberReferences(folder / "damaged", tree, "").find(addresses);
        CHECK(found.size() == addresses.size());
    }
}

TEST_CASE("profilers are told the types of sites, with all members") {
    const Compiled folder(R"(
struct Inner { char low; long high; };
struct Node { long key; Node* next; unsigned a : 3, b : 5; Inner inner; int several[4]; alignas(32) char last; };
extern "C" __attribute__((noinline)) long walk(const Node* n, long i) { return n->inner.high + n->several[i & 3]; }
int main(int argc, char**) { static Node node; return walk(&node, argc); }
)");
    constexpr std::uint64_t kStart = 0x7f0000000000;
    assay::collector::AddressMap addresses;
    addresses.map(kStart, kStart + 0x10000, 0, folder / "program");
    assay::symbols::Symbolizer symbolizer("");
    assay::collector::ReferenceTypes types(addresses, symbolizer);
    std::vector<trace_instr_t> instrs;
    std::vector<trace_site_t> sites;
    for (const std::uint64_t address : found_in(folder, "walk").addresses) {
        sites.push_back({static_cast<std::uint32_t>(instrs.size()), 8, TRACE_SITE_READ, 0});
        instrs.push_back({.pc = kStart + address});
    }
    const assay::collector::CodeTables code{{}, instrs, sites};

    std::map<std::string, std::uint64_t> told;  // offsets of references, by member
    std::uint32_t outermost = 0;
    for (std::uint32_t site = 0; site < sites.size(); ++site) {
        const auto found = types.of_site(site, code);
        if (found.number == 0) continue;
        told[types.row(found.number)->name] = found.offset;
        outermost = found.number;
    }
    CHECK(told == std::map<std::string, std::uint64_t>{{"high", 32}, {"several", UINT64_MAX}});
    CHECK(types.of_site(1000, code).number == 0);
    CHECK(types.row(0) == nullptr);

    while (types.row(outermost)->outer != 0) outermost = types.row(outermost)->outer;
    CHECK(std::string(types.row(outermost)->name) == "Node");
    CHECK(types.row(outermost)->kind == TRACE_TYPE_STRUCT);
    CHECK(types.row(outermost)->bytes == 96);
    CHECK(types.row(outermost)->alignment == 32);
    std::string members;
    for (std::uint32_t at = types.row(outermost)->members; at != 0; at = types.row(at)->next)
        members += std::string(types.row(at)->name) + " " + std::to_string(types.row(at)->offset) +
                   " " + std::to_string(types.row(at)->alignment) + ", ";
    CHECK(members == "key 0 8, next 8 8, a 16 4, b 16 4, inner 24 8, several 40 4, last 64 32, ");
}

}  // namespace member_references_test
