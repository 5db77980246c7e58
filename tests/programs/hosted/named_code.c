// Makes functions of two instructions each, and names them for profilers as just-in-time compilers
// do: in a perf map, or in a jitdump file in the folder given.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "machine_code.h"

enum {
    STEP = 64,
    FIRST = 0,
    SECOND = STEP,
    REPLACED = 2 * STEP,
    UNNAMED = 3 * STEP,
    MOVED = 4 * STEP
};

static void make(unsigned char* code, int calls) {
    write_return(code, calls);
    for (int i = 0; i < calls; ++i) call(code);
}

static int perf_map(unsigned char* code) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE* map = fopen(path, "w");
    if (map == NULL) return 1;
    fprintf(map, "%lx %x first(int)\n", (unsigned long)code + FIRST, RETURN_SIZE);
    make(code + FIRST, 3);
    fprintf(map, "this is no line\n%lx %x js:~second a.js:1:2\n", (unsigned long)code + SECOND,
            RETURN_SIZE);
    make(code + SECOND, 5);
    fprintf(map, "%lx %x old\n", (unsigned long)code + REPLACED, STEP);
    make(code + REPLACED, 1);
    fprintf(map, "%lx %x new\n", (unsigned long)code + REPLACED, RETURN_SIZE);
    make(code + REPLACED, 1);
    make(code + UNNAMED, 7);
    return fclose(map);
}

static void put(FILE* file, const void* bytes, size_t size) {
    fwrite(bytes, 1, size, file);
}
static void put_4(FILE* file, uint32_t number) {
    put(file, &number, sizeof number);
}
static void put_8(FILE* file, uint64_t number) {
    put(file, &number, sizeof number);
}

enum { HEADER = 40, PREFIX = 16 };
static void begin_record(FILE* dump, uint32_t kind, size_t body) {
    put_4(dump, kind);
    put_4(dump, (uint32_t)(PREFIX + body));
    put_8(dump, 0);  // time
}

static void put_ids_and_address(FILE* dump, const unsigned char* code) {
    put_4(dump, (uint32_t)getpid());
    put_4(dump, (uint32_t)getpid());
    put_8(dump, (uint64_t)code);
}

static void load(FILE* dump, const unsigned char* code, const char* name) {
    begin_record(dump, 0, 40 + strlen(name) + 1 + RETURN_SIZE);
    put_ids_and_address(dump, code);
    put_8(dump, (uint64_t)code);
    put_8(dump, RETURN_SIZE);
    put_8(dump, 0);
    put(dump, name, strlen(name) + 1);
    put(dump, code, RETURN_SIZE);
}

static void move(FILE* dump, const unsigned char* from, const unsigned char* to) {
    begin_record(dump, 1, 48);
    put_ids_and_address(dump, to);
    put_8(dump, (uint64_t)from);
    put_8(dump, (uint64_t)to);
    put_8(dump, RETURN_SIZE);
    put_8(dump, 0);
}

// The first instruction is of line 10, the second of line 11.
static void debug_info(FILE* dump, const unsigned char* code) {
    static const char kFile[] = "made.lang", kSame[] = "\xff";
    begin_record(dump, 2, 16 + 2 * 16 + sizeof kFile + sizeof kSame);
    put_8(dump, (uint64_t)code);
    put_8(dump, 2);
    put_8(dump, (uint64_t)code);
    put_4(dump, 10);
    put_4(dump, 0);
    put(dump, kFile, sizeof kFile);
    put_8(dump, (uint64_t)code + RETURN_SIZE - 1);
    put_4(dump, 11);
    put_4(dump, 0);
    put(dump, kSame, sizeof kSame);
}

static int jitdump(unsigned char* code, const char* folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/jit-%d.dump", folder, (int)getpid());
    FILE* dump = fopen(path, "w+");
    if (dump == NULL ||
        mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED)
        return 1;
    put_4(dump, 0x4A695444);
    put_4(dump, 1);
    put_4(dump, HEADER);
    put_4(dump, 62);  // EM_X86_64
    put_4(dump, 0);
    put_4(dump, (uint32_t)getpid());
    put_8(dump, 0);
    put_8(dump, 0);
    make(code + FIRST, 3);
    debug_info(dump, code + FIRST);
    load(dump, code + FIRST, "first(int)");
    make(code + MOVED, 4);
    move(dump, code + FIRST, code + MOVED);
    make(code + SECOND, 5);
    load(dump, code + SECOND, "second");
    make(code + UNNAMED, 7);
    begin_record(dump, 3, 0);
    return fclose(dump);
}

int main(int count, char** arguments) {
    unsigned char* code = map_all_permitted(PAGE);
    return count > 1 ? jitdump(code, arguments[1]) : perf_map(code);
}
