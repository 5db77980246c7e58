// A file descriptor that is closed at the end of its scope. For reading, or where another error
// would not matter: what close() says is lost.
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
