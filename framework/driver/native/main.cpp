// assay-driver-native --segment-fd=N --exe=FILE -- ARGV...
//
// Started by the collector, never by people: runs the program FILE with the arguments ARGV in
// translation, and writes what the trace specification in the segment asks for.
#include "framework/driver/native/process.h"

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
    int segment_fd = -1;
    std::string path;
    int i = 1;
    for (; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
        const std::string_view word = argv[i];
        if (word.starts_with("--segment-fd="))
            segment_fd = std::atoi(argv[i] + 13);
        else if (word.starts_with("--exe="))
            path = word.substr(6);
    }
    if (segment_fd < 0 || path.empty() || i + 1 >= argc) {
        std::fputs("assay: assay-driver-native is started by assay run\n", stderr);
        return 125;
    }
    const std::vector<std::string> arguments(argv + i + 1, argv + argc);
    static assay::native::Process process;
    if (!process.initialise(segment_fd)) return 125;
    process.load(path, arguments, environ);
    process.run();
}
