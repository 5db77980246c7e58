// The command line with which QEMU runs a program under this driver's plugin.
#pragma once

#include "framework/trace/launch.h"

#include <string>
#include <string_view>
#include <vector>

namespace assay::qemu {

// The words before the program. The last of them is the plugin's path.
struct Emulator {
    std::string path;     // of QEMU's program
    std::string plugin;   // of the plugin's file
    std::string sysroot;  // where QEMU looks first for files that the program opens; "": nowhere
    std::string cpu;      // "": QEMU's default
    bool fixed = true;    // the same random numbers in the program's auxiliary vector in each run
};
inline constexpr std::string_view kPluginOption = "-plugin";

// For a whole machine, the file of its firmware or kernel is an argument of the plugin.
inline constexpr std::string_view kImageArgument = "image=";

inline std::vector<std::string> words_of(const Emulator& emulator) {
    std::vector<std::string> words{emulator.path};
    const auto add = [&](const char* option, const std::string& value) {
        words.insert(words.end(), {option, value});
    };
    if (!emulator.sysroot.empty()) add("-L", emulator.sysroot);
    if (!emulator.cpu.empty()) add("-cpu", emulator.cpu);
    if (emulator.fixed) add("-seed", "1");
    add(kPluginOption.data(), emulator.plugin);
    return words;
}

// Returns the words of an emulator of whole machines: those of the user, which begin with its
// program, and the plugin.
inline std::vector<std::string> words_of_machine(const std::vector<std::string>& words,
                                                 const std::string& plugin,
                                                 const std::string& image) {
    const auto escaped = [](const std::string& path) {
        std::string text;
        for (const char c : path) text.append(c == ',' ? 2 : 1, c);
        return text;
    };
    std::vector<std::string> all{
        words.front(), std::string(kPluginOption),
        escaped(plugin) + "," + std::string(kImageArgument) + escaped(image)};
    all.insert(all.end(), words.begin() + 1, words.end());
    return all;
}

// Appends what follows: settings of the program's environment, and the program. QEMU runs with
// trace::driver_environment() of `environment`. QEMU takes a comma for the end of a variable, so
// the program does not get hidden variables with a comma.
template <typename Variables>
void add_program(std::vector<std::string>& words, const Variables& environment,
                 const std::string& file, const std::vector<std::string>& arguments) {
    const auto unset = [&](std::string_view variable) {
        words.insert(words.end(), {"-U", std::string(variable.substr(0, variable.find('=')))});
    };
    unset(trace::kLaunchVariable);
    for (const std::string_view variable : environment) {
        if (!trace::concerns_libc(variable)) continue;
        unset(std::string(trace::kHiddenPrefix) + std::string(variable));
        if (variable.find(',') == std::string_view::npos)
            words.insert(words.end(), {"-E", std::string(variable)});
    }
    if (!arguments.empty()) words.insert(words.end(), {"-0", arguments.front()});
    words.push_back(file);
    if (!arguments.empty()) words.insert(words.end(), arguments.begin() + 1, arguments.end());
}

}  // namespace assay::qemu
