/* assay/trace_types.h - what a driver captures, as profilers see it.
 *
 * Part of assay's C ABI, version 1. C99, no C++ types, fixed-width integers. Every layout below
 * is final. A struct that starts with its size can get members after the last one. Structs
 * without a size never change. Enumerations only grow.
 */
#ifndef ASSAY_TRACE_TYPES_H
#define ASSAY_TRACE_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One translated instruction of the profiled program. An instruction that belongs to several
 * basic blocks occurs several times, and its counts belong together. The index in the
 * instruction table identifies an occurrence within a run. 32 bytes. */
typedef struct trace_instr {
    uint64_t pc;       /* virtual address in the profiled process */
    uint32_t block;    /* index of its basic block in the block table */
    uint8_t length;    /* bytes, 1 to 15 */
    uint8_t flags;     /* TRACE_INSTR_* */
    uint16_t opcode;   /* TRACE_OPCODE(map, byte) */
    uint8_t bytes[15]; /* the encoding: `length` bytes */
    uint8_t reserved;
} trace_instr_t;

/* An opcode as the processor manual writes it: the map and the opcode byte. Maps are 0 for
 * one-byte opcodes, 1 for 0F, 2 for 0F38 and 3 for 0F3A (Intel SDM volume 2, appendix A). VEX,
 * EVEX and XOP maps are TRACE_MAP_VECTOR plus the number in the prefix: 1 to 3, 5 and 6, and 8
 * to 10 (AMD APM volume 3). All of 3DNow! is 0F 0F. More maps may come. */
#define TRACE_OPCODE(map, byte) ((uint16_t)(((map) << 8) | (byte)))
enum { TRACE_MAP_VECTOR = 0x10 };

enum {
    TRACE_INSTR_LOAD = 1,        /* reads data memory */
    TRACE_INSTR_STORE = 2,       /* writes data memory */
    TRACE_INSTR_CONDITIONAL = 4, /* conditional branch */
    TRACE_INSTR_INDIRECT = 8,    /* jump or call through a register or memory */
    TRACE_INSTR_CALL = 16,
    TRACE_INSTR_RETURN = 32,
    TRACE_INSTR_REPEATED = 64,  /* string instruction under a rep prefix */
    TRACE_INSTR_VARIABLE = 128, /* a TRACE_SITE_COUNT tells its number of references in each
                                   execution: repeated string instructions, gathers and scatters.
                                   Other masked instructions make one reference to the whole
                                   operand */
};

/* Facts about an instruction, independent of its execution. Names are those of XED and Zydis,
 * and never NULL. Members may be added at the end: compare `size`. */
typedef struct trace_instr_facts {
    uint32_t size;         /* of this struct, as assay was built */
    uint32_t flags;        /* TRACE_FACT_* */
    const char* mnemonic;  /* "vfmadd231pd", in lower case, without prefixes */
    const char* category;  /* "DATAXFER" */
    const char* extension; /* the instruction set: "BASE", "SSE2", "AVX512EVEX" */
    const char* isa_set;   /* the part of it: "I86", "AVX512F_512" */
    uint32_t vector_bits;  /* size of the longest vector operand, 64 (MMX) to 512; 0 without
                              vector operands */
    uint32_t element_type; /* TRACE_ELEMENT_*: the type of its elements. An integer type named in
                              the mnemonic can be smaller than `element_bits` */
    uint32_t element_bits; /* 8 to 64, or 80 for x87; 0 without elements */
    uint32_t elements;     /* number computed by an execution, including masked-out ones; 1 for x87
                              and for scalar instructions in vector registers */
    uint32_t loaded_bytes; /* bytes that an execution reads from data memory, with a full mask.
                              With TRACE_INSTR_VARIABLE: for each iteration or element */
    uint32_t stored_bytes; /* in the same way, bytes that it writes */
} trace_instr_facts_t;

enum {
    TRACE_FACT_LOCKED = 1, /* has a lock prefix, or is xchg with memory */
    TRACE_FACT_MASKED = 2, /* a mask selects the elements */
};
enum { TRACE_ELEMENT_NONE = 0, TRACE_ELEMENT_INTEGER = 1, TRACE_ELEMENT_FLOAT = 2 };

/* A basic block: instructions that are entered only at the first and left only at the last
 * (or by a fault). 16 bytes. */
typedef struct trace_block {
    uint64_t pc;          /* of its first instruction */
    uint32_t first_instr; /* index in the instruction table; the others follow */
    uint32_t instr_count;
} trace_block_t;

/* A site is a place in the code that makes one kind of record: references of a data operand,
 * instruction fetches, or other events. 8 bytes.
 *
 * The records of one execution of an instruction come in this order: TRACE_SITE_FETCH or _CODE;
 * _READ, _WRITE and _MODIFY, then _COUNT; _CALL and _TARGET, or _RETURN; _VALUE, also for values
 * read before the instruction; _BRANCH. A value of a call or return is in the context to which
 * it leads. */
typedef struct trace_site {
    uint32_t instr;  /* index in the instruction table */
    uint16_t bytes;  /* size of one reference, in bytes */
    uint8_t kind;    /* TRACE_SITE_* */
    uint8_t operand; /* 0 for the first data operand of the instruction, 1 for the next */
} trace_site_t;

enum {
    TRACE_SITE_FETCH = 0, /* instruction fetch, with the address and size of the instruction */
    TRACE_SITE_READ = 1,
    TRACE_SITE_WRITE = 2,
    TRACE_SITE_MODIFY = 3, /* read and then written at the same address: one reference */
    TRACE_SITE_COUNT = 4,  /* no reference: `value` is the number of references of each data
                              operand in this execution of a repeated or otherwise variable
                              instruction. Follows these references. For a repeated string
                              instruction, the number of iterations */

    /* With trace_capture_calls; no references, `bytes` is 0. These follow the data references of
     * their instruction. */
    TRACE_SITE_CALL = 5,   /* `value` is the stack pointer before the call: DWARF's canonical frame
                              address of the called function */
    TRACE_SITE_TARGET = 6, /* right after the record of an indirect call: `value` is the target.
                              The bytes of a direct call tell its target */
    TRACE_SITE_RETURN = 7, /* `value` is the stack pointer after the return */
    TRACE_SITE_STACK = 8,  /* the stack pointer has become `value`, which may lie on another
                              stack: a switch of coroutines, longjmp, the end of a C++ throw, the
                              return from a signal handler */
    TRACE_SITE_SIGNAL = 9, /* a signal handler begins, with this instruction: `value` is the
                              handler's canonical frame address, `aux` the signal's number */
    TRACE_SITE_INTERRUPTED = 10, /* right after TRACE_SITE_SIGNAL: `value` is the pc of the
                                    instruction before which the handler runs */

    /* With trace_capture_intervals; no references, `bytes` is 0. trace_parser_next_interval adds
     * these up. */
    TRACE_SITE_BLOCK_COUNT = 11,      /* `value` is the number of times that the thread's slot has
                                         entered block `aux` so far */
    TRACE_SITE_BLOCK_CORRECTION = 12, /* `value`, signed, is the number of instructions of block
                                         `aux` to add to the interval */
    TRACE_SITE_INTERVAL = 13,         /* an interval ends */

    /* With trace_capture_branches; no reference, `bytes` is 0. The instruction's flags say what
     * kind of branch it is. */
    TRACE_SITE_BRANCH = 14, /* `value` is the address where control continues: the target, or the
                               next instruction if a conditional branch is not taken. `aux` is 1
                               if the branch is taken, else 0 */
    /* With trace_capture_predictions; no reference, `bytes` is 0. */
    TRACE_SITE_PREDICTIONS = 15, /* a repeated string instruction that is predicted like
                                    branches: `value` is the number of branches of this
                                    execution, `aux` the number of mispredicted ones. Locked
                                    instructions make no records: each execution is one branch */

    /* With value lists. The records of one execution of an instruction are consecutive, in the
     * order of their sites, within one buffer. `value` is the captured value. The site's
     * `operand` tells which one: a trace_value_t of trace_vlist.h, plus 128 with TRACE_BEFORE.
     * TRACE_NONE only says that the instruction was executed. The site's `bytes` is the size of
     * the value, at most 8. trace_parser_next reads these records. */
    TRACE_SITE_VALUE = 16,

    /* With trace_capture_footprints; no reference, `bytes` is 0. `value` has a bit for each byte
     * of the most recent line of a set, the lowest bit for the first byte: bytes touched by
     * references that were omitted since the last record of the line, and possibly bytes of
     * recorded references. `aux` / 64 is the set. The next reference may bring another line to
     * it. */
    TRACE_SITE_FOOTPRINT = 17,

    /* With --sample, the last record of a buffer. `aux` is 0 at the end of a burst, 1 at the end
     * of the thread, 2 at the end of the warm-up before a burst. `value` is the number of
     * instructions that the thread has executed, captured or not. In a trace file, `aux` 3
     * begins a warm-up, or a burst without one, and `value` counts the instructions before it.
     * `aux` 4 stands before the end of a warm-up or burst, and `value` is the address where the
     * thread continues. Simulation points in a trace file are bursts without `aux` 4. */
    TRACE_SITE_BURST = 18,
    /* Before TRACE_SITE_BURST, with predictions: `value` is the number of mispredictions of the
     * branch of block `aux` in the thread's slot. */
    TRACE_SITE_BLOCK_MISPREDICTIONS = 19,

    /* With trace_capture_code: a fetch of `bytes` bytes of code, beginning with `instr`. */
    TRACE_SITE_CODE = 20,

    /* With --contexts, in a buffer with contexts: following records, except references, are in
     * another context. */
    TRACE_SITE_CONTEXT = 21,

    /* With --objects, for assay itself: an allocation of memory by the program. */
    TRACE_SITE_ALLOCATION = 22,

    /* Right after the TRACE_SITE_VALUE record of a value that some profiler asked for with
     * TRACE_WIDE: its next bytes, 8 in each record, and the site's `bytes` in the last one.
     * `operand` is that of the value. The sites are also consecutive. */
    TRACE_SITE_VALUE_REST = 23,

    /* With trace_capture_system_calls; no references, `bytes` is 0. The site's instruction is the
     * system call. */
    TRACE_SITE_SYSTEM_CALL = 24,        /* `value` is the number from asm/unistd_64.h. Made when the
                                           call returns. Made before calls that may not return: exit,
                                           exit_group, execve, execveat and rt_sigreturn */
    TRACE_SITE_SYSTEM_CALL_RESULT = 25, /* when the thread's last call returns: `value` is the
                                           result; -4095 to -1 are errors. `aux` is 1 if a signal
                                           came before the call; the call is recorded again if
                                           the handler returns to it */
    TRACE_SITE_SYSTEM_CALL_TIME = 26,   /* right after the result, if asked for: `value` is the
                                           duration in nanoseconds, including assay's work */

    /* With trace_capture_blocks, and in a trace file: the following records, until the next such
     * record of the thread, belong to one execution of the site's basic block. The site's
     * instruction is the first of the block; no reference, `bytes` and `value` are 0. */
    TRACE_SITE_BLOCK = 27,
    TRACE_SITE_BLOCK_LEFT = 28, /* a fault, or a change of the code, ended this execution early:
                                   `value` is the number of executed instructions, including one
                                   that faulted */

    /* With --objects, for assay itself: data references at and near `value`, if a filter leaves
     * out some references. Profilers do not get these records. */
    TRACE_SITE_OBJECT = 29,
};

/* Kinds of branches, for trace_capture_branches: a set of bits. */
enum {
    TRACE_CONDITIONAL_BRANCHES = 1, /* taken or not; includes loop and jrcxz */
    TRACE_INDIRECT_BRANCHES = 2,    /* jumps and calls through a register or memory */
    TRACE_DIRECT_CALLS = 4,
    TRACE_RETURNS = 8,
};

/* One captured event. A trace buffer is an array of them, in the order in which one thread
 * executed them. 16 bytes. */
typedef struct trace_record {
    uint64_t value; /* for a reference, the virtual address of its first byte */
    uint32_t site;  /* index in the site table */
    uint32_t aux;   /* for a reference 0, or see trace_capture_runs; undefined if the buffer has
                       contexts. For a count of a repeated comparison 1 if its result ended it, 0
                       if rcx did */
} trace_record_t;

/* A calling context, with trace_capture_calls: the calls that led to a place in a thread. Its
 * number is its index in the context table. Context 0 is outside of all calls. A parent has a
 * lower number. A recursive call goes to the context of the function's first entry on that path.
 * Exception: a function that a signal handler interrupted and then calls. 24 bytes. */
typedef struct trace_context {
    uint64_t call; /* pc of the call; for a signal handler, pc of the instruction before which it
                      runs */
    uint64_t function; /* the target: the first pc of the function, or of the stub that leads
                          there */
    uint32_t parent;
    uint32_t flags; /* TRACE_CONTEXT_* */
} trace_context_t;

enum {
    TRACE_CONTEXT_SIGNAL = 1, /* a signal handler, entered without a call */
};

/* A data object that references refer to, with --objects. Members may be added at the end:
 * compare `size`. */
typedef struct trace_data_object {
    uint32_t size;    /* of this struct, as assay was built */
    uint32_t number;  /* identifies the object, from 0 upwards. In vp_prof_process it is
                         preliminary if another thread allocated the memory and its records have
                         not arrived yet */
    uint32_t kind;    /* TRACE_DATA_*; more may come */
    uint32_t context; /* TRACE_DATA_HEAP and _MAPPING: the context of the allocation function or
                         system call; blocks of one context are one object. 0 if unknown */
    uint32_t thread;  /* TRACE_DATA_STACK and _FRAME: the thread; 256 stands for 256 and above */
    uint32_t reserved;
    uint64_t bytes;   /* size of a variable or of each block; 0 if blocks differ, and for other
                         kinds */
    uint64_t blocks;  /* number allocated so far; 0 for other kinds */
    const char* name; /* name of a variable or path of a file, else ""; never NULL */
} trace_data_object_t;

enum {
    TRACE_DATA_UNKNOWN = 0,
    TRACE_DATA_STATIC = 1,       /* a variable, or a section of a file without variables */
    TRACE_DATA_THREAD_LOCAL = 2, /* one object for all threads */
    TRACE_DATA_HEAP = 3,         /* blocks from allocation functions */
    TRACE_DATA_MAPPING = 4,      /* anonymous memory from system calls */
    TRACE_DATA_FILE = 5,         /* mapped */
    TRACE_DATA_BREAK = 6,        /* below the program break, outside of blocks */
    TRACE_DATA_STACK = 7,
    TRACE_DATA_FRAME = 8, /* a variable of a function, in all frames on a thread's stack */
};

/* A data type of the program, or a member of a type. Members may be added at the end: compare
 * `size`. */
typedef struct trace_data_type {
    uint32_t size;       /* of this struct, as assay was built */
    uint32_t kind;       /* TRACE_TYPE_*; more may come */
    uint32_t outer;      /* for a member: the number of the type or member that contains it; 0 for a
                            type */
    uint32_t members;    /* the number of the first member, by offset; 0 without members. A type has
                            all members, a member those that were referred to */
    uint32_t next;       /* for a member: the number of the next one in `outer`; 0 for the last */
    uint32_t first_bit;  /* for a bit-field: position from the lowest bit of the byte at `offset` */
    uint32_t bits;       /* size of a bit-field, else 0 */
    uint32_t bit_fields; /* number of members that this one stands for: more than 1 for
                            bit-fields that were referred to together, which also follow one by
                            one */
    uint64_t offset;     /* for a member: offset in the outermost type */
    uint64_t bytes;      /* 0 if unknown, and for an array without a bound */
    uint64_t alignment;  /* a power of two */
    const char* name;    /* "node", "next"; never NULL. A base class has the name of its type */
    const char* type;    /* type of a member, "node *"; else "" */
    const char* file;    /* file that declares a struct; "" if unknown */
    uint32_t line;       /* line of the declaration; 0 if unknown */
    uint32_t reserved;
} trace_data_type_t;

enum {
    TRACE_TYPE_MEMBER = 0,
    TRACE_TYPE_STRUCT = 1, /* or class */
    TRACE_TYPE_UNION = 2,
    TRACE_TYPE_POINTER = 3,
    TRACE_TYPE_OTHER = 4, /* a number, an enumeration, or a struct with unknown members */
};

/* A marker among the records: from the program (assay/client.h), or from assay. Skip unknown
 * operations: more may come. 48 bytes. */
typedef struct trace_marker {
    uint64_t record;    /* index of the record in the buffer that the marker precedes; the number of
                           records at the end */
    uint64_t operation; /* ASSAY_BEGIN_PHASE and higher ones of client.h; TRACE_MARKER_* */
    uint64_t address;   /* address of a region or of pages; number of a thread, of sites or of
                           markers; else 0 */
    uint64_t bytes;     /* size of a registered region or of pages, else 0 */
    const char* name;   /* name of a phase, or label of a registered region, else "". In texts of
                           the program, control characters except tabs, and invalid UTF-8, are
                           replaced by \xHH */
    const char* owner;  /* owner of a registered region, else "" */
} trace_marker_t;

enum {
    TRACE_MARKER_THREAD = 256,     /* the thread creates thread number `address` */
    TRACE_MARKER_THREAD_END = 257, /* the thread ends; nothing of it follows. Threads that run
                                      until the program ends have no such marker. `address` is
                                      the number of sites at that time: a record of a later site
                                      was made after this end */

    /* With trace_capture_mappings: the pages that `bytes` of memory at `address` have from here
     * on; both are multiples of 2 MiB. Other memory has pages of 4 KiB. */
    TRACE_MARKER_PAGES_4K = 258,
    TRACE_MARKER_PAGES_PRIVATE = 259, /* private anonymous memory: has transparent huge pages of
                                         2 MiB if the system gives them to all such memory */
    TRACE_MARKER_PAGES_ADVISED = 260, /* the same after madvise(MADV_HUGEPAGE): also has them if
                                         the system gives them on request */
    TRACE_MARKER_PAGES_2M = 261,      /* hugetlb pages */
    TRACE_MARKER_PAGES_1G = 262,
    TRACE_MARKER_PAGES_SEEN = 263, /* from here on the thread knows the first `address` page
                                      markers of the process, in the order in which they arrive */
};

/* The executions of a block by a thread in an interval. 16 bytes. */
typedef struct trace_interval_block {
    uint64_t instructions; /* instructions of the block executed in the interval; never 0 */
    uint32_t block;        /* index in the block table */
    uint32_t reserved;
} trace_interval_block_t;

/* An interval of a thread, with trace_capture_intervals. */
typedef struct trace_interval {
    uint32_t size;         /* of this struct, as assay was built */
    uint32_t thread;       /* as from trace_parser_get_thread */
    uint32_t complete;     /* 1, or 0 for the rest after the last complete interval */
    uint32_t block_count;  /* of `blocks` */
    uint64_t instructions; /* executed in the interval: the sum over `blocks` */
    const trace_interval_block_t* blocks; /* by index, each block once */
} trace_interval_t;

/* An ELF file mapped for execution. */
typedef struct trace_object {
    uint64_t start;   /* first virtual address of the mapping */
    uint64_t end;     /* first virtual address after the mapping */
    uint64_t offset;  /* offset of the mapping in the file, in bytes */
    const char* path; /* as mapped; never NULL */
} trace_object_t;

/* A place in the source of the program. 24 bytes. */
typedef struct trace_frame {
    const char* function; /* demangled; "???" if unknown. Never NULL */
    const char* file;     /* "???" if unknown. Never NULL */
    uint32_t line;        /* 0 if unknown */
    uint32_t reserved;    /* 0 */
} trace_frame_t;

#ifdef __cplusplus
}
#endif
#endif
