// The files of /proc that describe the process: they tell of the program.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cases.h"

static const char* own_path(const char* rest) {
    static char path[128];
    snprintf(path, sizeof path, "/proc/%d/%s", getpid(), rest);
    return path;
}

static const char* thread_path(const char* rest) {
    static char path[128];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", getpid(), rest);
    return path;
}

static void show_file(const char* name, const struct stat* expected, int folder, const char* path) {
    struct stat by_name = {0}, by_descriptor = {0};
    struct statx extended = {0};
    int descriptor = openat(folder, path, O_RDONLY);
    unsigned char begin[4] = {0};
    long got = read(descriptor, begin, sizeof begin);
    fstat(descriptor, &by_descriptor);
    int found = fstatat(folder, path, &by_name, 0);
    int looked = statx(folder, path, 0, STATX_BASIC_STATS, &extended);
    printf("%s: %ld %02x %d %d %d %d %d\n", name, got, begin[0], found, looked,
           by_name.st_ino == expected->st_ino, by_descriptor.st_ino == expected->st_ino,
           extended.stx_ino == expected->st_ino);
    char target[4096];
    ssize_t length = readlinkat(folder, path, target, sizeof target - 1);
    printf("%.*s %d\n", (int)length, target, faccessat(folder, path, X_OK, 0));
    close(descriptor);
}

static int executable(void) {
    struct stat expected, link;
    stat((const char*)getauxval(AT_EXECFN), &expected);
    show_file("self", &expected, AT_FDCWD, "/proc/self/exe");
    show_file("thread-self", &expected, AT_FDCWD, "/proc/thread-self/exe");
    show_file("own", &expected, AT_FDCWD, own_path("exe"));
    show_file("thread", &expected, AT_FDCWD, thread_path("exe"));
    show_file("untidy", &expected, AT_FDCWD, "//proc/./self//exe");
    int folder = open("/proc/self", O_RDONLY | O_DIRECTORY);
    show_file("relative", &expected, folder, "exe");
    int other = open("/", O_RDONLY | O_DIRECTORY);
    show_file("from the root", &expected, other, "proc/self/exe");
    if (chdir("/proc/self") != 0) return 1;
    show_file("here", &expected, AT_FDCWD, "exe");
    show_file("back here", &expected, AT_FDCWD, "../self/./task/../exe");
    show_file("elsewhere", &expected, folder, "fd/../exe");
    show_file("above the root", &expected, AT_FDCWD, "/../proc/self/exe");
    show_file("through links", &expected, AT_FDCWD, "/proc/self/root/proc/thread-self/cwd/exe");
    lstat("/proc/self/exe", &link);
    printf("%d\n", S_ISLNK(link.st_mode));
    show_error(open("/proc/self/exe", O_RDONLY | O_NOFOLLOW), ELOOP);
    show_error(open("/proc/self/exe", O_RDWR), ETXTBSY);
    return 0;
}

static int links(void) {
    char small[4] = "", *wrong = (char*)1;
    printf("%zd %.3s\n", readlink("/proc/self/exe", small, 3), small);
    printf("%zd %d\n", readlink("/proc/self/exe", small, 0), errno == EINVAL);
    show_error(syscall(SYS_readlink, "/proc/self/exe", small, -1), EINVAL);
    show_error(syscall(SYS_readlink, "/proc/self/exe", wrong, 100), EFAULT);
    return 0;
}

// Names and places that are not memory of the program's.
static int pointers(void) {
    char *wrong = (char*)1,
         *end = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(end, 4096);
    show_error(syscall(SYS_open, wrong, O_RDONLY), EFAULT);
    show_error(syscall(SYS_open, end, O_RDONLY), EFAULT);
    show_error(syscall(SYS_open, NULL, O_RDONLY), EFAULT);
    show_error(syscall(SYS_openat, AT_FDCWD, wrong, O_RDONLY), EFAULT);
    show_error(syscall(SYS_stat, wrong, end), EFAULT);
    show_error(syscall(SYS_stat, "/proc/self/exe", end), EFAULT);
    show_error(syscall(SYS_access, wrong, R_OK), EFAULT);
    show_error(syscall(SYS_readlink, wrong, wrong, 10), EFAULT);
    show_error(syscall(SYS_execve, wrong, NULL, NULL), EFAULT);
    show_error(syscall(SYS_rt_sigaction, 1, wrong, NULL, 8), EFAULT);
    show_error(syscall(SYS_rt_sigprocmask, 0, wrong, NULL, 8), EFAULT);
    show_error(syscall(SYS_sigaltstack, wrong, NULL), EFAULT);
    show_error(syscall(SYS_rt_sigsuspend, wrong, 8), EFAULT);
    show_error(syscall(SYS_getdents64, open("/proc/self/fd", O_RDONLY), wrong, 1000), EFAULT);
    return 0;
}

struct line {
    uintptr_t start, end;
    char permissions[8], name[256];
};

// The line of maps, or smaps, that has the address.
static struct line line_of(const char* path, const void* address) {
    struct line line = {0}, none = {0};
    char text[512];
    FILE* file = fopen(path, "r");
    if (file == NULL) return none;
    while (fgets(text, sizeof text, file) != NULL) {
        line = none;
        if (sscanf(text, "%lx-%lx %7s %*x %*s %*u %255[^\n]", &line.start, &line.end,
                   line.permissions, line.name) >= 3 &&
            line.start <= (uintptr_t)address && (uintptr_t)address < line.end) {
            fclose(file);
            return line;
        }
    }
    fclose(file);
    return none;
}

static void show_line(const char* path, const char* what, const void* address) {
    struct line line = line_of(path, address);
    const char* name = strrchr(line.name, '/');
    printf("%s: %s %s\n", what, line.permissions, name ? name : line.name);
}

static void show_lines(const char* path) {
    int local = 0;
    char* heap = sbrk(8192);
    memset(heap, 1, 8192);
    void* mapped = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    show_line(path, "stack", &local);
    show_line(path, "heap", heap + 4096);
    show_line(path, "code", (const void*)(uintptr_t)&show_lines);
    show_line(path, "library", (const void*)(uintptr_t)&printf);
    show_line(path, "mapped", mapped);
    show_line(path, "vdso", (const void*)getauxval(AT_SYSINFO_EHDR));
}

static int maps(void) {
    show_lines("/proc/self/maps");
    show_lines("/proc/self/smaps");
    show_lines(own_path("maps"));
    show_lines(thread_path("maps"));
    return 0;
}

// Nothing is there that the program has not mapped, and lines are in order and in the usual form.
static int foreign_maps(void) {
    char text[512];
    FILE* file = fopen("/proc/self/maps", "r");
    uintptr_t before = 0;
    int lines = 0;
    while (fgets(text, sizeof text, file) != NULL) {
        uintptr_t start = 0, end = 0;
        int name = 0;
        sscanf(text, "%lx-%lx %*s %*x %*s %*u %n", &start, &end, &name);
        if (start < before || end <= start) puts("out of order");
        if (text[name] != '\0' && text[name] != '\n' && name < 73) printf("%d: %s", name, text);
        if (strstr(text, "assay-driver") != NULL) printf("%s", text);
        if (strstr(text, "memfd") != NULL) printf("%s", text);
        if (strstr(text, "stdc++") != NULL) printf("%s", text);
        if (strstr(text, "[stack]") != NULL || strstr(text, "[heap]") != NULL) ++lines;
        before = end;
    }
    printf("%d\n", lines);
    return 0;
}

static int maps_of_generated_code(void) {
    unsigned char* code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, "\xb8\x07\x00\x00\x00\xc3", 6);  // mov $7, %eax; ret
    int (*function)(void);
    memcpy(&function, &code, sizeof function);
    printf("%d\n", function());
    show_line("/proc/self/maps", "before", code);
    code[1] = 8;
    show_line("/proc/self/maps", "after", code);
    printf("%d\n", function());
    return 0;
}

static int main_stack(void) {
    pthread_attr_t attributes;
    void* start = NULL;
    size_t bytes = 0;
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    printf("%d\n", pthread_getattr_np(pthread_self(), &attributes));
    pthread_attr_getstack(&attributes, &start, &bytes);
    char* local = (char*)&limit;
    printf("%d %d\n", local >= (char*)start, local < (char*)start + bytes);
    printf("%d\n", bytes <= limit.rlim_cur && bytes > limit.rlim_cur / 2);
    // All of it can be used.
    volatile char* lowest = (char*)start + 16 * 4096;
    *lowest = 1;
    printf("%d\n", *lowest);
    return 0;
}

static int environment(void) {
    extern char** environ;
    static char text[65536];
    int file = open("/proc/self/environ", O_RDONLY);
    ssize_t bytes = read(file, text, sizeof text);
    ssize_t at = 0;
    size_t same = 0;
    for (; at < bytes && environ[same] != NULL; ++same) {
        if (strcmp(environ[same], text + at) != 0) break;
        at += (ssize_t)strlen(text + at) + 1;
    }
    printf("%d %d\n", at == bytes, environ[same] == NULL);
    file = open("/proc/self/cmdline", O_RDONLY);
    bytes = read(file, text, sizeof text);
    printf("%zd %s %s\n", bytes, text, text + strlen(text) + 1);
    file = open("/proc/self/comm", O_RDONLY);
    bytes = read(file, text, sizeof text);
    printf("%.*s", (int)bytes, text);
    return 0;
}

static int auxiliary_vector(void) {
    Elf64_auxv_t entries[64] = {0};
    int file = open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = read(file, entries, sizeof entries);
    size_t count = (size_t)bytes / sizeof entries[0];
    int known = 0;
    for (size_t i = 0; i < count; ++i) {
        unsigned long type = entries[i].a_type, value = entries[i].a_un.a_val;
        if (type == AT_ENTRY || type == AT_PHDR || type == AT_RANDOM || type == AT_EXECFN ||
            type == AT_BASE)
            known += getauxval(type) == value;
    }
    printf("%d %d %d\n", count > 15, known, fcntl(file, F_GETFD));
    printf("%d\n", entries[count - 1].a_type == AT_NULL);
    return 0;
}

static int access_modes(void) {
    struct stat status;
    printf("%d\n", stat("/proc/self/maps", &status));
    printf("%d\n", access("/proc/self/maps", R_OK));
    show_error(open("/proc/self/maps", O_RDONLY | O_DIRECTORY), ENOTDIR);
    printf("%d\n", open("/proc/self/maps", O_RDONLY));
    show_error(open("/proc/999999999/maps", O_RDONLY), ENOENT);
    show_error(open("/proc/self/task/1000000/exe", O_RDONLY), ENOENT);
    return 0;
}

// What the descriptor is, and what can be done with it, are the kernel's.
static void show_descriptor(const char* path, int flags) {
    int file = open(path, flags, 0600);
    struct stat status = {0};
    struct statfs system = {0};
    printf("%s %x: %d\n", path, flags, file < 0 ? errno : 0);
    if (file < 0) return;
    fstat(file, &status);
    fstatfs(file, &system);
    printf("%x %x %o %lx\n", fcntl(file, F_GETFL), fcntl(file, F_GETFD), status.st_mode,
           (unsigned long)system.f_type);
    close(file);
}

static int descriptors(void) {
    static const char* const paths[] = {"/proc/self/maps", "/proc/self/smaps", "/proc/self/environ",
                                        "/proc/self/auxv"};
    static const int flags[] = {O_RDONLY,
                                O_RDONLY | O_NONBLOCK | O_CLOEXEC,
                                O_RDONLY | O_APPEND,
                                O_RDONLY | O_CREAT,
                                O_RDONLY | O_CREAT | O_EXCL,
                                O_RDONLY | O_DIRECTORY,
                                O_RDONLY | O_NOATIME,
                                O_PATH};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; ++i) {
        for (size_t k = 0; k < sizeof flags / sizeof flags[0]; ++k)
            show_descriptor(paths[i], flags[k]);
        char text[64];
        int file = open(paths[i], O_RDONLY);
        show_error(write(file, "x", 1), EBADF);
        show_error(ftruncate(file, 0), EINVAL);
        show_error(fchmod(file, 0644), EPERM);
        show_error(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED ? -1 : 0,
                   ENODEV);
        printf("%zd %ld\n", pread(file, text, 10, 5), (long)lseek(file, 1, SEEK_SET));
        show_error(pread(file, text, 10, -1), EINVAL);
        show_error(syscall(SYS_read, file, 1L, 10L), EFAULT);
        close(file);
    }
    return 0;
}

// However it is read, and from wherever.
static int ways_to_read(void) {
    static char whole[65536], parts[65536];
    int file = open("/proc/self/maps", O_RDONLY);
    size_t bytes = 0;
    ssize_t got = 0;
    while ((got = read(file, whole + bytes, sizeof whole - bytes)) > 0) bytes += (size_t)got;
    int copy = dup(file);
    lseek(copy, 0, SEEK_SET);
    size_t again = 0;
    for (;;) {
        struct iovec to[2] = {{parts + again, 7}, {parts + again + 7, 100}};
        if ((got = readv(file, to, 2)) <= 0) break;
        again += (size_t)got;
    }
    printf("%d %d\n", bytes == again, memcmp(whole, parts, bytes));
    printf("%d\n", lseek(copy, 0, SEEK_CUR) == (off_t)bytes);
    got = preadv(copy, &(struct iovec){parts, 50}, 1, 100);
    printf("%zd %d\n", got, memcmp(whole + 100, parts, 50));
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", copy);
    int reopened = open(path, O_RDONLY);
    got = read(reopened, parts, 200);
    printf("%d\n", memcmp(whole, parts, (size_t)got));
    return 0;
}

// Linux 6.11: linux/fs.h, struct procmap_query.
struct map_query {
    uint64_t size, query_flags, query_addr;
    uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
    uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
    uint64_t vma_name_addr, build_id_addr;
};

static void show_query(int file, const char* what, uint64_t address, uint64_t flags) {
    char name[256] = "";
    struct map_query query = {.size = sizeof query,
                              .query_flags = flags,
                              .query_addr = address,
                              .vma_name_size = sizeof name,
                              .vma_name_addr = (uintptr_t)name};
    if (ioctl(file, _IOWR('f', 17, struct map_query), &query) != 0) {
        printf("%s: %d\n", what, errno);
        return;
    }
    const char* last = strrchr(name, '/');
    printf("%s: %s %d %lx %d %d\n", what, last ? last : name,
           query.vma_name_size == (name[0] ? strlen(name) + 1 : 0), (unsigned long)query.vma_flags,
           query.vma_start <= address, address < query.vma_end);
}

static int queries_of_maps(void) {
    int local = 0, file = open("/proc/self/maps", O_RDONLY);
    char* heap = sbrk(8192);
    memset(heap, 1, 8192);
    show_query(file, "code", (uintptr_t)&queries_of_maps, 0);
    show_query(file, "library", (uintptr_t)&printf, 0);
    show_query(file, "heap", (uintptr_t)heap + 4096, 0);
    show_query(file, "stack", (uintptr_t)&local, 0);
    show_query(file, "writable code", (uintptr_t)&queries_of_maps, 2);
    show_query(file, "nothing", 0, 0);
    show_query(file, "first of code", 0, 0x14);
    show_query(file, "wrong", 0, 0x100);
    return 0;
}

static void show_resolved(int folder, const char* path, uint64_t flags, uint64_t resolve) {
    struct open_how how = {.flags = flags, .resolve = resolve};
    long file = syscall(SYS_openat2, folder, path, &how, sizeof how);
    printf("%s %lx %lx: %d\n", path, (unsigned long)flags, (unsigned long)resolve,
           file < 0 ? errno : 0);
    if (file >= 0) close((int)file);
}

static int resolved(void) {
    int self = open("/proc/self", O_RDONLY | O_DIRECTORY);
    static const uint64_t flags[] = {O_RDONLY, O_PATH, O_PATH | O_NOFOLLOW, O_RDONLY | O_NOFOLLOW};
    static const uint64_t resolve[] = {0,
                                       RESOLVE_NO_XDEV,
                                       RESOLVE_NO_MAGICLINKS,
                                       RESOLVE_NO_SYMLINKS,
                                       RESOLVE_BENEATH,
                                       RESOLVE_IN_ROOT,
                                       1 << 20};
    for (size_t f = 0; f < sizeof flags / sizeof flags[0]; ++f)
        for (size_t r = 0; r < sizeof resolve / sizeof resolve[0]; ++r) {
            show_resolved(AT_FDCWD, "/proc/self/exe", flags[f], resolve[r]);
            show_resolved(AT_FDCWD, "/proc/self/maps", flags[f], resolve[r]);
            show_resolved(self, "exe", flags[f], resolve[r]);
            show_resolved(self, "environ", flags[f], resolve[r]);
        }
    return 0;
}

// The program's file cannot be written to by any name.
static int text_file_busy(void) {
    const char* path = (const char*)getauxval(AT_EXECFN);
    show_error(open(path, O_WRONLY), ETXTBSY);
    show_error(open(path, O_RDWR | O_CREAT, 0700), ETXTBSY);
    show_error(open(path, O_RDWR | O_CREAT | O_EXCL, 0700), EEXIST);
    show_error(truncate(path, 1 << 20), ETXTBSY);
    show_error(truncate("/proc/self/exe", 1 << 20), ETXTBSY);
    printf("%d\n", open(path, O_RDONLY) >= 0);
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", path);
    char* name = strrchr(folder, '/');  // as from the root
    if (name == NULL) return 1;
    char own_name[256];
    snprintf(own_name, sizeof own_name, "%s", name);
    *name = 0;
    const int root = open(folder, O_RDONLY | O_DIRECTORY);
    static const uint64_t resolve[] = {RESOLVE_IN_ROOT, RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS, 0};
    for (size_t r = 0; r < sizeof resolve / sizeof resolve[0]; ++r)
        for (int beneath = 0; beneath < 2; ++beneath) {
            const struct open_how how = {.flags = O_WRONLY, .resolve = resolve[r]};
            errno = 0;
            const long file = syscall(SYS_openat2, root, own_name + beneath, &how, sizeof how);
            printf("%d %s\n", file < 0, strerror(errno));
        }
    return 0;
}

// sendfile(2), splice(2) and copy_file_range(2).
static int moved(void) {
    int ends[2];
    const int maps = open("/proc/self/maps", O_RDONLY), place = open("/tmp", O_PATH);
    if (pipe(ends) != 0) return 1;
    const int to[] = {ends[1], ends[0], place, -1};
    for (size_t i = 0; i < sizeof to / sizeof to[0]; ++i) {
        errno = 0;
        printf("%ld ", splice(maps, NULL, to[i], NULL, 4096, 0));
        printf("%ld ", splice(maps, NULL, to[i], NULL, 0, 0));
        printf("%d ", errno);
        errno = 0;
        printf("%ld ", sendfile(to[i], maps, NULL, 4096));
        printf("%d\n", errno);
    }
    errno = 0;
    printf("%ld ", splice(open("/proc/self/maps", O_PATH), NULL, ends[1], NULL, 4096, 0));
    printf("%d\n", errno);
    return 0;
}

int main(int argc, char** argv) {
    static const struct test_case cases[] = {
        {"executable", executable},
        {"links", links},
        {"pointers", pointers},
        {"maps", maps},
        {"foreign_maps", foreign_maps},
        {"maps_of_generated_code", maps_of_generated_code},
        {"main_stack", main_stack},
        {"environment", environment},
        {"auxiliary_vector", auxiliary_vector},
        {"access_modes", access_modes},
        {"descriptors", descriptors},
        {"ways_to_read", ways_to_read},
        {"queries_of_maps", queries_of_maps},
        {"resolved", resolved},
        {"text_file_busy", text_file_busy},
        {"moved", moved},
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
