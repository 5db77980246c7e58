#include "framework/symbols/symbolizer.h"

#include "framework/symbols/debug_info.h"
#include "framework/symbols/object_symbols.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

namespace assay::symbols {

namespace {

// Each thread keeps the debug information of one object in memory.
constexpr std::size_t kMostThreads = 4;

// Optional tasks, which one other thread does one after the other.
class Background {
  public:
    using Task = std::function<void()>;

    Background() = default;
    ~Background() { end(); }
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

    // Adds a task. It is dropped if no thread can be started, and its exceptions are ignored.
    void add(Task task);
    // Drops all tasks except the running one.
    void drop_waiting();
    // Waits for the running task and drops the others. No task runs afterwards.
    void end();

  private:
    void work();

    std::mutex mutex_;
    std::condition_variable changed_;  // signals changes of the members below
    std::deque<Task> waiting_;
    bool ends_ = false;
    std::thread thread_;
};

void Background::end() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Background::add(Task task) {
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(std::move(task));
    }
    changed_.notify_all();
    if (thread_.joinable()) return;
    try {
        thread_ = std::thread(&Background::work, this);
    } catch (const std::system_error&) {
        drop_waiting();
    }
}

void Background::drop_waiting() {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
}

void Background::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
        if (ends_) return;
        Task task = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        try {
            task();
        } catch (const std::exception&) {
        }
        task = {};
        lock.lock();
    }
}

}  // namespace

struct Symbolizer::Impl {
    Impl(std::string debug_root, std::string cache_folder)
        : pool(std::move(debug_root), ImageCache(std::move(cache_folder))) {}
    ObjectSymbols& object(const std::string& path) {
        return objects.try_emplace(path, path, pool).first->second;
    }

    // No thread may use the object or its answers any more.
    void forget_outdated(const std::string& path) {
        const auto known = objects.find(path);
        if (known == objects.end() || !known->second.is_outdated()) return;
        pool.forget(path);
        objects.erase(known);
    }

    DebugInfoPool pool;
    std::unordered_map<std::string, ObjectSymbols> objects;
    std::vector<Request> not_learned;
    Background background;  // last: its tasks use `objects`
};

Symbolizer::Symbolizer(std::string debug_root, std::string cache_folder)
    : cache_folder_(std::move(cache_folder)),
      impl_(std::make_unique<Impl>(std::move(debug_root), cache_folder_)) {}

Symbolizer::~Symbolizer() = default;

void Symbolizer::prepare(const std::string& object_path) {
    ObjectSymbols& object = impl_->object(object_path);
    if (!impl_->pool.knows(object_path)) impl_->background.add([&object] { object.open(); });
}

void Symbolizer::end_background() {
    impl_->background.end();
}

void Symbolizer::open_now(const std::string& object_path) {
    impl_->object(object_path).open();
}

void Symbolizer::learn(const Request& request) {
    impl_->forget_outdated(request.object_path);
    impl_->object(request.object_path).learn(request.addresses);
}

void Symbolizer::forget_replaced() {
    std::vector<std::string> paths;
    for (const auto& [path, object] : impl_->objects) paths.push_back(path);
    for (const std::string& path : paths) impl_->forget_outdated(path);
}

const std::vector<Request>& Symbolizer::not_learned() const {
    return impl_->not_learned;
}

std::vector<Location> Symbolizer::resolve(const std::string& object_path,
                                          std::span<const std::uint64_t> addresses) {
    impl_->not_learned.assign(1, {object_path, {}});
    return impl_->object(object_path).resolve(addresses, impl_->not_learned[0].addresses);
}

std::vector<std::vector<Location>> Symbolizer::resolve(std::span<const Request> requests) {
    impl_->background.drop_waiting();
    std::vector<ObjectSymbols*> objects;
    impl_->not_learned.clear();
    for (const Request& request : requests) {
        objects.push_back(&impl_->object(request.object_path));
        impl_->not_learned.push_back({request.object_path, {}});
    }
    // The largest requests come first, so that no thread is still busy with one at the end.
    std::vector<std::size_t> order(requests.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return requests[a].addresses.size() > requests[b].addresses.size();
    });
    std::vector<std::vector<Location>> locations(requests.size());
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t turn = 0; (turn = next++) < order.size();) {
            const std::size_t i = order[turn];
            locations[i] =
                objects[i]->resolve(requests[i].addresses, impl_->not_learned[i].addresses);
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

std::set<std::string> Symbolizer::take_missing_files(const std::string& object_path) {
    return impl_->object(object_path).take_missing_files();
}

std::uint64_t Symbolizer::address_of_offset(const std::string& object_path,
                                            std::uint64_t file_offset) {
    const ElfFile* file = impl_->object(object_path).file();
    return file != nullptr ? file->address_of_offset(file_offset) : 0;
}

std::string Symbolizer::build_id(const std::string& object_path) {
    const ElfFile* file = impl_->object(object_path).file();
    return file != nullptr ? file->build_id() : std::string();
}

}  // namespace assay::symbols
