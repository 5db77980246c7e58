#include "framework/symbols/symbolizer.h"

#include "framework/symbols/dwarf_resolver.h"
#include "framework/symbols/early_opener.h"
#include "framework/symbols/elf_file.h"
#include "framework/symbols/frame_store.h"
#include "framework/symbols/symbol_table.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <numeric>
#include <thread>
#include <unordered_map>
#include <utility>

namespace assay::symbols {

namespace {

// Resolving keeps an object's debug information in memory: no more than that many at once.
constexpr std::size_t kMostThreads = 4;

struct Object {
    explicit Object(const std::string& path) : file(ElfFile::open(path)) {}

    std::unique_ptr<ElfFile> file;  // null if it cannot be read
    FrameStore frames;
    std::unordered_map<std::uint64_t, Location> learned;
};

std::vector<Location> locate(Object& object, const DebugInfo& debug,
                             std::span<const std::uint64_t> addresses) {
    FrameStore& frames = object.frames;
    std::vector<Location> locations(addresses.size(), frames.unknown());
    std::vector<std::string_view> functions =
        symbol_names(*object.file, debug.separate_file(), addresses, frames.names());
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        bool repeated = i > 0 && functions[i].data() == functions[i - 1].data();
        locations[i] = repeated ? locations[i - 1] : frames.without_source(functions[i]);
    }
    if (debug.dwarf() != nullptr) {
        resolve_with_dwarf(debug.dwarf(), object.file->code_start(), addresses, functions, frames,
                           locations);
    }
    return locations;
}

}  // namespace

struct Symbolizer::Impl {
    Impl(std::string debug_root, std::string cache_folder)
        : opener(std::move(debug_root), ImageCache(std::move(cache_folder))) {}
    Object& object(const std::string& path) {
        return objects.try_emplace(path, path).first->second;
    }
    // On any thread. Notes in `asked` what has not been learned.
    std::vector<Location> resolve(const Request& request, Object& object, Request& asked);
    std::vector<Location> look_up(const Request& request, Object& object);

    std::unordered_map<std::string, Object> objects;
    EarlyOpener opener;
    std::vector<Request> not_learned;
};

std::vector<Location> Symbolizer::Impl::look_up(const Request& request, Object& object) {
    if (object.file == nullptr) {
        return std::vector<Location>(request.addresses.size(), object.frames.unknown());
    }
    return locate(object, *opener.take(request.object_path), request.addresses);
}

std::vector<Location> Symbolizer::Impl::resolve(const Request& request, Object& object,
                                                Request& asked) {
    if (object.learned.empty()) {
        asked = request;
        return look_up(request, object);
    }
    asked.object_path = request.object_path;
    for (const std::uint64_t address : request.addresses) {
        if (!object.learned.contains(address)) asked.addresses.push_back(address);
    }
    if (asked.addresses.size() == request.addresses.size()) return look_up(request, object);
    std::vector<Location> found;
    if (!asked.addresses.empty()) found = look_up(asked, object);
    std::vector<Location> locations;
    locations.reserve(request.addresses.size());
    auto next = found.begin();
    for (const std::uint64_t address : request.addresses) {
        const auto known = object.learned.find(address);
        locations.push_back(known != object.learned.end() ? known->second : *next++);
    }
    return locations;
}

Symbolizer::Symbolizer(std::string debug_root, std::string cache_folder)
    : impl_(std::make_unique<Impl>(std::move(debug_root), std::move(cache_folder))) {}

Symbolizer::~Symbolizer() = default;

void Symbolizer::prepare(const std::string& object_path) {
    impl_->opener.want(object_path);
}

void Symbolizer::open_now(const std::string& object_path) {
    impl_->opener.open(object_path);
}

void Symbolizer::learn(const Request& request) {
    Object& object = impl_->object(request.object_path);
    Request missing{request.object_path, {}};
    for (const std::uint64_t address : request.addresses) {
        if (!object.learned.contains(address)) missing.addresses.push_back(address);
    }
    if (missing.addresses.empty() || object.file == nullptr) return;
    std::unique_ptr<DebugInfo> debug = impl_->opener.take(request.object_path);
    const std::vector<Location> locations = locate(object, *debug, missing.addresses);
    for (std::size_t i = 0; i < locations.size(); ++i) {
        object.learned.emplace(missing.addresses[i], locations[i]);
    }
    impl_->opener.put_back(request.object_path, std::move(debug));
}

const std::vector<Request>& Symbolizer::not_learned() const {
    return impl_->not_learned;
}

std::vector<Location> Symbolizer::resolve(const std::string& object_path,
                                          std::span<const std::uint64_t> addresses) {
    const Request request{object_path, {addresses.begin(), addresses.end()}};
    impl_->not_learned.assign(1, {});
    return impl_->resolve(request, impl_->object(object_path), impl_->not_learned[0]);
}

std::vector<std::vector<Location>> Symbolizer::resolve(std::span<const Request> requests) {
    std::vector<Object*> objects;
    for (const Request& request : requests) {
        objects.push_back(&impl_->object(request.object_path));
    }
    // What takes long comes first, so that no thread is left alone with it at the end.
    std::vector<std::size_t> order(requests.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return requests[a].addresses.size() > requests[b].addresses.size();
    });
    std::vector<std::vector<Location>> locations(requests.size());
    impl_->not_learned.assign(requests.size(), {});
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t turn = 0; (turn = next++) < order.size();) {
            const std::size_t i = order[turn];
            locations[i] = impl_->resolve(requests[i], *objects[i], impl_->not_learned[i]);
        }
    };
    const std::size_t threads =
        std::min<std::size_t>({requests.size(), std::thread::hardware_concurrency(), kMostThreads});
    std::vector<std::future<void>> others;
    for (std::size_t i = 1; i < threads; ++i) others.push_back(std::async(work));
    work();
    for (std::future<void>& other : others) other.get();
    return locations;
}

std::uint64_t Symbolizer::address_of_offset(const std::string& object_path,
                                            std::uint64_t file_offset) {
    const ElfFile* file = impl_->object(object_path).file.get();
    return file != nullptr ? file->address_of_offset(file_offset) : 0;
}

std::string Symbolizer::build_id(const std::string& object_path) {
    const ElfFile* file = impl_->object(object_path).file.get();
    return file != nullptr ? file->build_id() : std::string();
}

}  // namespace assay::symbols
