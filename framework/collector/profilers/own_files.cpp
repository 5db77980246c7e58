#include "framework/collector/profilers/own_files.h"

#include <sys/stat.h>
#include <algorithm>

namespace assay::collector {

void OwnFiles::add(int descriptor) {
    struct stat status {};
    if (fstat(descriptor, &status) == 0)
        files_.push_back({descriptor, status.st_dev, status.st_ino});
}

// Another file can have been opened under the number.
bool OwnFiles::are_open() const {
    return std::all_of(files_.begin(), files_.end(), [](const File& file) {
        struct stat status {};
        return fstat(file.descriptor, &status) == 0 && status.st_dev == file.device &&
               status.st_ino == file.inode;
    });
}

}  // namespace assay::collector
