// Names of Python functions for CPython 3.9 to 3.11, as `python3 -X perf` of CPython 3.12 gives
// them. An evaluation function (PEP 523) calls a small generated function for each Python function,
// and that function calls the interpreter. /tmp/jit-PID.dump names the generated functions.
//
// In CPython 3.11 it also tells assay the lines of the instructions of Python (assay/client.h).
// Each line of a function has an address of its own, which is never executed.
//
// python_names.py loads this library. The interpreter's functions are declared here, so that the
// build needs no headers of Python. All callers hold the interpreter's lock.
#include "assay/client.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

typedef void Object;  // a PyObject
typedef void Thread;  // a PyThreadState
typedef void Frame;   // a PyFrameObject; in 3.11 a _PyInterpreterFrame
typedef Object* Evaluate(Thread*, Frame*, int throwing);
typedef Object* Trampoline(Thread*, Frame*, int throwing, Evaluate*);

char* PyBytes_AsString(Object*);
int PyDict_Next(Object*, intptr_t* position, Object** key, Object** value);
Object* PyDict_GetItemWithError(Object*, Object* key);
Object* PyDict_New(void);
int PyDict_SetItem(Object*, Object* key, Object* value);
void PyErr_Clear(void);
void PyErr_Fetch(Object** type, Object** value, Object** traceback);
void PyErr_Restore(Object* type, Object* value, Object* traceback);
Object* PyFrame_GetCode(Frame*);
Object* PyFunction_GetCode(Object*);
Object* PyIter_Next(Object*);
void* PyInterpreterState_Get(void);
long PyLong_AsLong(Object*);
void* PyLong_AsVoidPtr(Object*);
Object* PyLong_FromUnsignedLongLong(unsigned long long);
Object* PyLong_FromVoidPtr(void*);
Object* PyObject_CallMethod(Object*, const char* name, const char* format, ...);
Object* PyObject_CallObject(Object*, Object* arguments);
Object* PyObject_GetAttrString(Object*, const char*);
Object* PyTuple_GetItem(Object*, intptr_t index);
intptr_t PyTuple_Size(Object*);
Object* PyUnicode_AsEncodedString(Object*, const char* encoding, const char* errors);
const char* PyUnicode_AsUTF8(Object*);
int PyUnicode_CompareWithASCIIString(Object*, const char*);
Object* PyUnicode_FromFormat(const char*, ...);
void Py_DecRef(Object*);
int _PyCode_GetExtra(Object* code, intptr_t index, void** extra);
int _PyCode_SetExtra(Object* code, intptr_t index, void* extra);
intptr_t _PyEval_RequestCodeExtraIndex(void (*release)(void*));
Evaluate* _PyInterpreterState_GetEvalFrameFunc(void* interpreter);
void _PyInterpreterState_SetEvalFrameFunc(void* interpreter, Evaluate*);

static int minor_version;
static Evaluate* interpret;   // the evaluation function before install()
static intptr_t extra_index;  // of the trampoline in the extra data of code
static Object* names;         // bytes to the address of the trampoline with this name
static int dump = -1;         // a jitdump file
static void* mapped_dump;     // shows profilers that the file exists
static pid_t dump_owner;

// With lines.
static Object* lines;              // (trampoline, line) to the address of the line
static int counts_lines;           // assay counts by line
static size_t instructions_begin;  // in code

enum { kPosition = 7 };  // in words of a _PyInterpreterFrame of 3.11: `prev_instr`
enum { kPage = 4096, kArenaBytes = 1 << 16, kInstruction = 2 };

// The frame's code, borrowed.
static Object* code_of(Frame* frame) {
    // `f_code` of a _PyInterpreterFrame. install() checks it.
    if (minor_version == 11) return ((Object**)frame)[4];
    Object* code = PyFrame_GetCode(frame);
    Py_DecRef(code);  // the frame keeps it
    return code;
}

static const unsigned char kTrampoline[16] = {
    0xf3, 0x0f, 0x1e, 0xfa,  // endbr64
    0x55,                    // push rbp
    0x48, 0x89, 0xe5,        // mov rbp, rsp
    0xff, 0xd1,              // call rcx
    0x5d,                    // pop rbp
    0xc3,                    // ret
    0xcc, 0xcc, 0xcc, 0xcc,
};

// Memory for trampolines and lines, NULL on errors. It is never freed, so an address has one name.
static unsigned char* take(size_t bytes) {
    static unsigned char *next, *end;
    if ((size_t)(end - next) < bytes) {
        const size_t size = (bytes + kArenaBytes - 1) / kArenaBytes * kArenaBytes;
        unsigned char* arena =
            mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (arena == MAP_FAILED) return NULL;
        for (size_t at = 0; at < size; at += sizeof kTrampoline)
            memcpy(arena + at, kTrampoline, sizeof kTrampoline);
        if (mprotect(arena, size, PROT_READ | PROT_EXEC) != 0) {
            munmap(arena, size);
            return NULL;
        }
        next = arena;
        end = arena + size;
    }
    unsigned char* taken = next;
    next += (bytes + sizeof kTrampoline - 1) / sizeof kTrampoline * sizeof kTrampoline;
    return taken;
}

// --- The jitdump file (Linux, tools/perf/Documentation/jitdump-specification.txt).

typedef struct {
    uint32_t magic, version, bytes, machine, padding, process;
    uint64_t time, flags;
} Header;

typedef struct {
    uint32_t kind, bytes;
    uint64_t time;
} Record;

// All of `code` belongs to one line.
static void write_code(const char* name, const unsigned char* code, size_t bytes, const char* file,
                       uint32_t line) {
    enum { kLoad = 0, kDebugInfo = 2 };
    static uint64_t index;
    const size_t name_bytes = strlen(name) + 1, file_bytes = strlen(file) + 1;
    const uintptr_t address = (uintptr_t)code;
    const struct {
        Record record;
        uint64_t address, count, first;
        uint32_t line, discriminator;
    } debug = {
        {kDebugInfo, (uint32_t)(sizeof debug + file_bytes), 0}, address, 1, address, line, 0};
    const struct {
        Record record;
        uint32_t process, thread;
        uint64_t load, address, bytes, index;
    } load = {{kLoad, (uint32_t)(sizeof load + name_bytes + bytes), 0},
              (uint32_t)getpid(),
              (uint32_t)getpid(),
              address,
              address,
              bytes,
              ++index};
    // At once: if the process is killed, the file ends between two records.
    const struct iovec parts[] = {{(void*)&debug, sizeof debug},
                                  {(void*)file, file_bytes},
                                  {(void*)&load, sizeof load},
                                  {(void*)name, name_bytes},
                                  {(void*)code, bytes}};
    if (dump >= 0 && writev(dump, parts, sizeof parts / sizeof parts[0]) < 0) {
        close(dump);
        dump = -1;
    }
}

// Starts the process's file. A forked child needs a file of its own, with all that its parent's
// has.
static void open_dump(void) {
    const int parent = dump;
    char path[64];
    snprintf(path, sizeof path, "/tmp/jit-%d.dump", (int)getpid());
    unlink(path);  // of an earlier process
    dump = open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    dump_owner = getpid();
    if (mapped_dump) munmap(mapped_dump, kPage);
    mapped_dump = NULL;
    if (dump >= 0) {
        const Header header = {0x4a695444, 1, sizeof header, EM_X86_64, 0, (uint32_t)getpid(),
                               0,          0};
        if (write(dump, &header, sizeof header) < 0) {
        }  // an empty file has no names
        void* mapping = mmap(NULL, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0);
        if (mapping != MAP_FAILED) mapped_dump = mapping;
    }
    if (parent < 0) return;
    char part[kPage];
    ssize_t got;
    for (off_t at = sizeof(Header); (got = pread(parent, part, sizeof part, at)) > 0; at += got)
        if (dump >= 0 && write(dump, part, (size_t)got) != got) break;
    close(parent);
}

__attribute__((visibility("default"))) void python_names_after_fork(void) {
    if (getpid() != dump_owner) open_dump();
}

// --- Names.

// "py::NAME:FILE" as bytes, or NULL. A new reference.
static Object* map_name(Object* code, Object* qualified) {
    Object* file = PyObject_GetAttrString(code, "co_filename");
    Object* text = file ? PyUnicode_FromFormat("py::%U:%U", qualified, file) : NULL;
    Object* name = text ? PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace") : NULL;
    Py_DecRef(file);
    Py_DecRef(text);
    // Each name has one line.
    for (char* at = name ? PyBytes_AsString(name) : ""; *at; ++at)
        if ((unsigned char)*at < ' ') *at = '?';
    return name;
}

static long number_of(Object* object, const char* attribute) {
    Object* value = PyObject_GetAttrString(object, attribute);
    const long number = value ? PyLong_AsLong(value) : 0;
    Py_DecRef(value);
    return number;
}

static void write_named(Object* code, Object* name, const unsigned char* at, size_t bytes,
                        uint32_t line) {
    Object* file = PyObject_GetAttrString(code, "co_filename");
    const char* path = file ? PyUnicode_AsUTF8(file) : NULL;
    if (!path) PyErr_Clear();
    python_names_after_fork();
    write_code(PyBytes_AsString(name), at, bytes, path ? path : "", line);
    Py_DecRef(file);
}

// Code with equal names shares a trampoline. Programs that make functions again and again therefore
// need no more memory. NULL on errors.
static void* trampoline_named(Object* code, Object* name) {
    Object* known = PyDict_GetItemWithError(names, name);
    if (known) return PyLong_AsVoidPtr(known);
    void* trampoline = take(sizeof kTrampoline);
    Object* address = trampoline ? PyLong_FromVoidPtr(trampoline) : NULL;
    if (!address) return NULL;
    if (PyDict_SetItem(names, name, address) == 0) {
        // Without counts by line, those of the function would seem to be those of its first line.
        const long line = counts_lines ? number_of(code, "co_firstlineno") : 0;
        write_named(code, name, trampoline, sizeof kTrampoline, (uint32_t)line);
    }
    Py_DecRef(address);
    return trampoline;
}

// --- Lines.

// The lines of the instructions; 0 where there is none. Sets their number. NULL on errors.
static uint32_t* lines_of(Object* code, size_t* count) {
    Object* ranges = PyObject_CallMethod(code, "co_lines", NULL);
    uint32_t* result = NULL;
    *count = 0;
    for (Object* range; ranges && (range = PyIter_Next(ranges)); Py_DecRef(range)) {
        const long end = PyLong_AsLong(PyTuple_GetItem(range, 1)) / kInstruction;
        const long line = PyLong_AsLong(PyTuple_GetItem(range, 2));
        if (line < 0) PyErr_Clear();  // None
        if (end < (long)*count) continue;
        uint32_t* longer = realloc(result, (size_t)end * sizeof *result);
        if (!longer) break;
        result = longer;
        while (*count < (size_t)end) result[(*count)++] = line < 0 ? 0 : (uint32_t)line;
    }
    Py_DecRef(ranges);
    PyErr_Clear();
    return result;
}

// The address of a line of a function; 0 on errors or if it has none. Code with equal names shares
// it.
static uint64_t address_of_line(Object* code, Object* name, const void* trampoline, uint32_t line) {
    if (line == 0) return 0;
    // Trampolines are at multiples of 16, so that this has 64 bits.
    Object* key =
        PyLong_FromUnsignedLongLong((uintptr_t)trampoline / sizeof kTrampoline << 20 ^ line);
    Object* known = key ? PyDict_GetItemWithError(lines, key) : NULL;
    uint64_t address = known ? (uintptr_t)PyLong_AsVoidPtr(known) : 0;
    unsigned char* made = known || !key ? NULL : take(1);
    Object* value = made ? PyLong_FromVoidPtr(made) : NULL;
    if (value && PyDict_SetItem(lines, key, value) == 0) {
        write_named(code, name, made, 1, line);
        address = (uintptr_t)made;
    }
    Py_DecRef(key);
    Py_DecRef(value);
    return address;
}

static void tell_lines(Object* code, Object* name, const void* trampoline) {
    size_t count;
    uint32_t* numbers = lines_of(code, &count);
    uint64_t* addresses = numbers ? malloc(count * sizeof *addresses) : NULL;
    if (addresses) {
        for (size_t i = 0; i < count; ++i)
            addresses[i] = i && numbers[i] == numbers[i - 1]
                               ? addresses[i - 1]
                               : address_of_line(code, name, trampoline, numbers[i]);
        assay_register_lines((char*)code + instructions_begin, count, kInstruction, addresses);
    }
    free(addresses);
    free(numbers);
}

static void add(Object* code, Object* qualified);

// Names the functions that are defined in `code`, as the compiler of CPython does. Before 3.11,
// code does not know its qualified name.
static void add_nested(Object* code, Object* qualified) {
    enum { kOptimized = 1 };  // CO_OPTIMIZED: a function, not a class
    Object* flags = PyObject_GetAttrString(code, "co_flags");
    Object* constants = PyObject_GetAttrString(code, "co_consts");
    const char* between = flags && (PyLong_AsLong(flags) & kOptimized) ? ".<locals>." : ".";
    const int is_module = PyUnicode_CompareWithASCIIString(qualified, "<module>") == 0;
    const intptr_t count = constants ? PyTuple_Size(constants) : 0;
    for (intptr_t i = 0; i < count; ++i) {
        Object* constant = PyTuple_GetItem(constants, i);
        Object* name = PyObject_GetAttrString(constant, "co_name");
        if (!name) {
            PyErr_Clear();  // not code
            continue;
        }
        Object* full = is_module ? PyUnicode_FromFormat("%U", name)
                                 : PyUnicode_FromFormat("%U%s%U", qualified, between, name);
        if (full) add(constant, full);
        Py_DecRef(name);
        Py_DecRef(full);
    }
    Py_DecRef(flags);
    Py_DecRef(constants);
}

static void add(Object* code, Object* qualified) {
    Object* name = map_name(code, qualified);
    void* trampoline = name ? trampoline_named(code, name) : NULL;
    if (trampoline && counts_lines) tell_lines(code, name, trampoline);
    Py_DecRef(name);
    if (trampoline && _PyCode_SetExtra(code, extra_index, trampoline) == 0 && minor_version < 11)
        add_nested(code, qualified);
}

static Trampoline* trampoline_of(Object* code) {
    void* trampoline = NULL;
    if (_PyCode_GetExtra(code, extra_index, &trampoline) == 0 && !trampoline) {
        // A generator may be about to throw an exception.
        Object *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        Object* name = PyObject_GetAttrString(code, minor_version < 11 ? "co_name" : "co_qualname");
        if (name) add(code, name);
        Py_DecRef(name);
        _PyCode_GetExtra(code, extra_index, &trampoline);
        PyErr_Restore(type, value, traceback);
    }
    Trampoline* function;
    memcpy(&function, &trampoline, sizeof function);
    return function;
}

static Object* evaluate(Thread* thread, Frame* frame, int throwing) {
    Trampoline* trampoline = trampoline_of(code_of(frame));
    return trampoline ? trampoline(thread, frame, throwing, interpret)
                      : interpret(thread, frame, throwing);
}

static Object* first_code;
static char* first_instruction;

static Object* evaluate_probe(Thread* thread, Frame* frame, int throwing) {
    if (!first_code) {
        first_code = code_of(frame);
        // `prev_instr` of a _PyInterpreterFrame
        if (minor_version == 11) first_instruction = ((char**)frame)[kPosition] + kInstruction;
    }
    return interpret(thread, frame, throwing);
}

static const char kUnknownFrames[] = "the frames of this interpreter have an unknown layout";

// Checks where the position lies in a frame, and the first instruction in code: at the end of the
// fixed part.
static int can_find_lines(void) {
    Object* type = PyObject_GetAttrString(first_code, "__class__");
    const long fixed = type ? number_of(type, "__basicsize__") : 0;
    Py_DecRef(type);
    instructions_begin = (size_t)fixed;
    return fixed > 0 && first_instruction == (char*)first_code + fixed;
}

// Returns whether assay counts by line.
static int register_interpreter(void) {
    void* function;
    memcpy(&function, &interpret, sizeof function);
    Dl_info info;
    ElfW(Sym)* symbol = NULL;
    if (!dladdr1(function, &info, (void**)&symbol, RTLD_DL_SYMENT) || !symbol ||
        info.dli_saddr != function)
        return 0;
    return assay_register_interpreter(function, symbol->st_size, kPosition * sizeof(void*));
}

// `minor` is that of Python 3. `probe` is a Python function without parameters; calling it shows
// whether frames are as expected. Returns a message on errors, or NULL.
__attribute__((visibility("default"))) const char* python_names_install(int minor, Object* probe) {
    void* interpreter = PyInterpreterState_Get();
    minor_version = minor;
    interpret = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate_probe);
    Py_DecRef(PyObject_CallObject(probe, NULL));
    _PyInterpreterState_SetEvalFrameFunc(interpreter, interpret);
    if (first_code != PyFunction_GetCode(probe)) return kUnknownFrames;
    if (minor == 11 && !can_find_lines()) return kUnknownFrames;
    extra_index = _PyEval_RequestCodeExtraIndex(NULL);
    names = PyDict_New();
    lines = PyDict_New();
    if (extra_index < 0 || !names || !lines)
        return "this interpreter has no room for extra data of code";
    open_dump();
    if (dump < 0) return "cannot write a file /tmp/jit-PID.dump";
    if (minor == 11) counts_lines = register_interpreter();
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
    return NULL;
}
