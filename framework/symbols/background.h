// Tasks that are done one after the other on a thread of their own, if there is time.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace assay::symbols {

class Background {
  public:
    using Task = std::function<void()>;

    Background() = default;
    ~Background() { end(); }
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

    // A task that nobody relies on: it is left, too, where there can be no thread. What it throws
    // is lost.
    void add(Task task);
    // Leaves all tasks but the one that is being done.
    void drop_waiting();
    // Waits for that one, and leaves the others, for good.
    void end();

  private:
    void work();

    std::mutex mutex_;
    std::condition_variable changed_;  // anything below
    std::deque<Task> waiting_;
    bool ends_ = false;
    std::thread thread_;
};

}  // namespace assay::symbols
