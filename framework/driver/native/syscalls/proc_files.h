// The files of /proc that describe the process itself: they tell of the driver what a program
// expects of itself. The calls that name files see the program's.
#pragma once

#include "framework/driver/native/process/shown_files.h"
#include "framework/driver/native/syscalls/syscalls.h"

#include <string>

namespace assay::native {

// Which file of this process the path names, from `folder` on as openat(2) takes it.
ProcFile proc_file(int folder, const std::string& path);

// open, creat, openat, openat2.
long do_open(const Call& call);
long do_truncate(const Call& call);
// readlink, readlinkat.
long do_readlink(const Call& call);
// stat, access and their relatives: calls that look at what a path names.
long do_look(const Call& call);

}  // namespace assay::native
