#include "framework/collector/profilers/plugin_search.h"
#include "framework/support/error.h"
#include "tools/cli/run.h"
#include "tools/code/object_code.h"
#include "tools/command_line/command_line.h"
#include "tools/sweep/point_run.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <Zydis/Zydis.h>
#include <elfutils/libdwfl.h>
#include <fmt/core.h>
#include <gnu/libc-version.h>
#include <libdeflate.h>
#include <pcre2.h>
#include <sys/utsname.h>
#include <zlib.h>
#include <zstd.h>
#include <array>

namespace assay {
namespace {

std::string zydis_version() {
    const ZyanU64 version = ZydisGetVersion();
    return fmt::format("{}.{}.{}", ZYDIS_VERSION_MAJOR(version), ZYDIS_VERSION_MINOR(version),
                       ZYDIS_VERSION_PATCH(version));
}

std::string pcre2_version() {
    std::array<char, 64> text{};  // pcre2api(3) requires at least 24 characters
    pcre2_config(PCRE2_CONFIG_VERSION, text.data());
    const std::string version = text.data();
    return version.substr(0, version.find(' '));
}

std::string libraries() {
    return fmt::format(
        "glibc {}, Zydis {}, Capstone {}, libdw {}, zstd {}, zlib {}, libdeflate {}, PCRE2 {}, fmt "
        "{}.{}.{}",
        gnu_get_libc_version(), zydis_version(), Disassembler::capstone_version(),
        dwfl_version(nullptr), ZSTD_versionString(), zlibVersion(), LIBDEFLATE_VERSION_STRING,
        pcre2_version(), FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100);
}

// What the native driver says of the processor.
std::string processor_report(const std::string& driver, const std::string& hidden) {
    if (!isa::kHasNativeDriver) return "driver: qemu only\n";
    const std::string path =
        driver.find('/') == std::string::npos ? collector::find_native_driver() : driver;
    const sweep::CommandOutput processor = sweep::output_of({path, "--processor", hidden});
    if (processor.status != 0)
        throw Error(fmt::format("{} --processor: {}", path, processor.problem));
    return processor.text;
}

}  // namespace

std::string version_report(const std::string& driver, const std::string& hidden) {
    utsname system{};
    uname(&system);
    return fmt::format("{}{}kernel: {} {}\nlibraries: {}\n", version_line(),
                       processor_report(driver, hidden), system.sysname, system.release,
                       libraries());
}

}  // namespace assay
