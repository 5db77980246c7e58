// Two libraries for thrown.cpp: `outer` calls what it is given through `inner`.
#pragma once

#include <stdexcept>

// Thrown by one library, caught by another and by the program: its type is known to all.
class Refusal : public std::runtime_error {
  public:
    explicit Refusal(int depth_reached);
    ~Refusal() override;
    int depth() const { return depth_; }

  private:
    int depth_;
};

using Callback = void (*)(int);

// Calls the function at that depth of recursion, with an object to destroy in each frame.
void call_from_within(int depth, Callback callback);
int alive();

// Calls the function through the other library. What it throws is caught, nested into an exception
// of this library's, and thrown again.
void call_through(int depth, Callback callback);

// Runs the function in a thread and throws there what the function has thrown here.
void call_in_thread(int depth, Callback callback);
