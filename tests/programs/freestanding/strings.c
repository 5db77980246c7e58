// Byte loops over text: length, copy, reverse, search, character classes through a table.
#include "freestanding.h"

static char text[20001], copy[20001];
static unsigned char kind[256];

static NOINLINE void compose(void) {
    uint64_t state = 7;
    for (int i = 0; i < 20000; ++i) text[i] = "etaoin shrdlu,"[next_random(&state) % 14];
}

static NOINLINE size_t length(const char* string) {
    const char* end = string;
    while (*end != '\0') ++end;
    return (size_t)(end - string);
}

static NOINLINE void reverse_into(char* to, const char* from, size_t count) {
    for (size_t i = 0; i < count; ++i) to[count - 1 - i] = from[i];
}

static NOINLINE size_t occurrences(const char* haystack, const char* needle) {
    size_t found = 0;
    for (; *haystack != '\0'; ++haystack) {
        size_t i = 0;
        while (needle[i] != '\0' && haystack[i] == needle[i]) ++i;
        if (needle[i] == '\0') ++found;
    }
    return found;
}

static NOINLINE size_t words(const char* string) {
    size_t count = 0;
    unsigned before = 1;
    for (; *string != '\0'; ++string) {
        unsigned now = kind[(unsigned char)*string];
        if (before && !now) ++count;
        before = now;
    }
    return count;
}

int program(void) {
    compose();
    kind[' '] = kind[','] = 1;
    size_t count = length(text);
    reverse_into(copy, text, count);
    write_number("length", count);
    write_number("found", occurrences(text, "the") + occurrences(copy, "eht"));
    write_number("words", words(text));
    return 0;
}
