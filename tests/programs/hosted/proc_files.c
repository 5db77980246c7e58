// The files of /proc that describe the process: they tell of the program.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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
    };
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
