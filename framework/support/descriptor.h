// A file descriptor that is closed at the end of its scope. The error of close() is lost, so use it
// for reading, or where another error would not matter.
#pragma once

#include <unistd.h>

namespace assay {

class Descriptor {
  public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0) close(number_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int number() const { return number_; }

  private:
    int number_;
};

}  // namespace assay
