// Names of Python functions for CPython 3.9 to 3.11, as `python3 -X perf` of CPython 3.12 gives
// them. An evaluation function (PEP 523) calls a small generated function for each Python function,
// and that function calls the interpreter. /tmp/perf-PID.map names the generated functions.
//
// python_names.py loads this library. The interpreter's functions are declared here, so that the
// build needs no headers of Python. All callers hold the interpreter's lock.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
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
void* PyInterpreterState_Get(void);
long PyLong_AsLong(Object*);
void* PyLong_AsVoidPtr(Object*);
Object* PyLong_FromVoidPtr(void*);
Object* PyObject_CallObject(Object*, Object* arguments);
Object* PyObject_GetAttrString(Object*, const char*);
Object* PyTuple_GetItem(Object*, intptr_t index);
intptr_t PyTuple_Size(Object*);
Object* PyUnicode_AsEncodedString(Object*, const char* encoding, const char* errors);
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
static int map = -1;
static pid_t map_owner;

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

// Trampolines are never freed, so an address has one name.
static unsigned char* new_trampoline(void) {
    enum { kArenaBytes = 1 << 16 };
    static unsigned char *next, *end;
    if (next == end) {
        unsigned char* arena =
            mmap(NULL, kArenaBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (arena == MAP_FAILED) return NULL;
        for (size_t at = 0; at < kArenaBytes; at += sizeof kTrampoline)
            memcpy(arena + at, kTrampoline, sizeof kTrampoline);
        if (mprotect(arena, kArenaBytes, PROT_READ | PROT_EXEC) != 0) {
            munmap(arena, kArenaBytes);
            return NULL;
        }
        next = arena;
        end = arena + kArenaBytes;
    }
    unsigned char* trampoline = next;
    next += sizeof kTrampoline;
    return trampoline;
}

static void write_name(Object* name, void* trampoline) {
    if (map >= 0)
        dprintf(map, "%" PRIxPTR " %zx %s\n", (uintptr_t)trampoline, sizeof kTrampoline,
                PyBytes_AsString(name));
}

// Starts the process's map with all names. A forked child needs a map of its own.
static void open_map(void) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    if (map >= 0) close(map);
    unlink(path);  // of an earlier process
    map = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    map_owner = getpid();
    intptr_t position = 0;
    for (Object *name, *address; PyDict_Next(names, &position, &name, &address);)
        write_name(name, PyLong_AsVoidPtr(address));
}

__attribute__((visibility("default"))) void python_names_after_fork(void) {
    if (getpid() != map_owner) open_map();
}

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

// Code with equal names shares a trampoline. Programs that make functions again and again therefore
// need no more memory. NULL on errors.
static void* trampoline_named(Object* name) {
    Object* known = PyDict_GetItemWithError(names, name);
    if (known) return PyLong_AsVoidPtr(known);
    void* trampoline = new_trampoline();
    Object* address = trampoline ? PyLong_FromVoidPtr(trampoline) : NULL;
    if (!address) return NULL;
    if (PyDict_SetItem(names, name, address) == 0) {
        python_names_after_fork();
        write_name(name, trampoline);
    }
    Py_DecRef(address);
    return trampoline;
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
    void* trampoline = name ? trampoline_named(name) : NULL;
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

static Object* evaluate_probe(Thread* thread, Frame* frame, int throwing) {
    if (!first_code) first_code = code_of(frame);
    return interpret(thread, frame, throwing);
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
    if (first_code != PyFunction_GetCode(probe))
        return "the frames of this interpreter have an unknown layout";
    extra_index = _PyEval_RequestCodeExtraIndex(NULL);
    names = PyDict_New();
    if (extra_index < 0 || !names) return "this interpreter has no room for extra data of code";
    open_map();
    if (map < 0) return "cannot write a file /tmp/perf-PID.map";
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
    return NULL;
}
