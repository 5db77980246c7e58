#include "framework/driver/native/process/shown_files.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace assay::native {

void ShownFiles::add(int descriptor, ProcFile file) {
    struct statfs system {};
    struct stat status {};
    if (fstatfs(descriptor, &system) != 0 || system.f_type != PROC_SUPER_MAGIC) return;
    if (fstat(descriptor, &status) != 0) return;
    files_.insert_or_assign({status.st_dev, status.st_ino}, ShownFile{file, {}});
}

ShownFile* ShownFiles::find(long descriptor) {
    struct stat status {};
    // Mostly there are none, and reading costs no more than natively.
    if (files_.empty() || fstat(static_cast<int>(descriptor), &status) != 0) return nullptr;
    const auto found = files_.find({status.st_dev, status.st_ino});
    return found == files_.end() ? nullptr : &found->second;
}

}  // namespace assay::native
