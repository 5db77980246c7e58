// Privileges that a process gets by executing a file. A process that executes the driver in the
// file's place would not get them.
#pragma once

#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace assay {

// Why the kernel would change the identity or the capabilities of the process; null if it would
// not: fs/exec.c, bprm_fill_uid, and security/commoncap.c, get_file_caps. Root has all capabilities
// anyway (handle_privileged_root).
inline const char* privilege(int descriptor) {
    struct stat status {};
    struct statvfs system {};
    if (fstat(descriptor, &status) != 0 || fstatvfs(descriptor, &system) != 0) return nullptr;
    if (system.f_flag & ST_NOSUID || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return nullptr;
    if (status.st_mode & S_ISUID && status.st_uid != geteuid()) return "it is set-user-ID";
    constexpr mode_t kSetGroup = S_ISGID | S_IXGRP;
    if ((status.st_mode & kSetGroup) == kSetGroup && status.st_gid != getegid())
        return "it is set-group-ID";
    const bool is_root = getuid() == 0 && !(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) & SECBIT_NOROOT);
    if (!is_root && fgetxattr(descriptor, "security.capability", nullptr, 0) > 0)
        return "it has file capabilities";
    return nullptr;
}

}  // namespace assay
