/* assay/trace_types.h - what a driver captures, as profilers see it.
 *
 * Part of assay's C ABI, version 1. C99, no C++ types, fixed-width integers. Every layout
 * below is final: fields are only ever added behind the last one of a struct that starts with
 * its size; arrays of structs without a size field never change. Enumerations only grow.
 */
#ifndef ASSAY_TRACE_TYPES_H
#define ASSAY_TRACE_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One translated instruction of the profiled program. The same program counter can occur more
 * than once, when an instruction belongs to several basic blocks; counts of all its
 * occurrences belong together. The index in the instruction table is the instruction's
 * identity within a run. 32 bytes. */
typedef struct trace_instr {
    uint64_t pc;       /* virtual address in the profiled process */
    uint32_t block;    /* index of its basic block in the block table */
    uint8_t length;    /* bytes, 1 to 15 */
    uint8_t flags;     /* TRACE_INSTR_* */
    uint16_t opcode;   /* TRACE_OPCODE(map, byte) */
    uint8_t bytes[15]; /* the encoding, `length` bytes of it */
    uint8_t reserved;
} trace_instr_t;

/* An opcode as the processor manual writes it: the map and the opcode byte. Maps are 0 one-byte,
 * 1 0F, 2 0F38 and 3 0F3A (Intel SDM volume 2, appendix A); plus TRACE_MAP_VECTOR, as VEX and EVEX
 * prefixes number them, 1 to 3, 5 and 6, and as XOP does, 8 to 10 (AMD APM volume 3). All of
 * 3DNow! is 0F 0F. More maps may come. */
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
    TRACE_INSTR_VARIABLE = 128, /* its number of references is known only when it runs, and
                                   told by a TRACE_SITE_COUNT: repeated string instructions,
                                   gathers and scatters. Not other masked instructions: each
                                   execution is one reference of the whole operand, whatever
                                   the mask says */
};

/* What an instruction is, whatever it is executed with. Names are those of XED and Zydis, and never
 * NULL. Structs of this kind get members only behind the last: compare `size`. */
typedef struct trace_instr_facts {
    uint32_t size;         /* of this struct, as assay was built */
    uint32_t flags;        /* TRACE_FACT_* */
    const char* mnemonic;  /* "vfmadd231pd", in lower case, without prefixes */
    const char* category;  /* "DATAXFER" */
    const char* extension; /* of the instruction set: "BASE", "SSE2", "AVX512EVEX" */
    const char* isa_set;   /* the part of it: "I86", "AVX512F_512" */
    uint32_t vector_bits;  /* of the longest vector register among its operands, 64 (MMX) to 512; 0
                              if there is none */
    uint32_t element_type; /* of what it computes with, TRACE_ELEMENT_*. Of integers, the type that
                              the name says can be a part of `element_bits` */
    uint32_t element_bits; /* 8 to 64, or 80 of the x87; 0 without elements */
    uint32_t elements;     /* how many an execution computes, those that a mask leaves out among
                              them; 1 of scalar instructions in vector registers, and of the x87 */
    uint32_t loaded_bytes; /* that an execution reads from data memory, under a mask at most. With
                              TRACE_INSTR_VARIABLE: in each iteration, or for each element */
    uint32_t stored_bytes; /* likewise, writes */
} trace_instr_facts_t;

enum {
    TRACE_FACT_LOCKED = 1, /* by a prefix, or because it is xchg with memory */
    TRACE_FACT_MASKED = 2, /* only some elements are computed or moved */
};
enum { TRACE_ELEMENT_NONE = 0, TRACE_ELEMENT_INTEGER = 1, TRACE_ELEMENT_FLOAT = 2 };

/* A basic block: instructions that are entered only at the first and left only at the last
 * (or by a fault). 16 bytes. */
typedef struct trace_block {
    uint64_t pc;          /* of its first instruction */
    uint32_t first_instr; /* index in the instruction table; the others follow */
    uint32_t instr_count;
} trace_block_t;

/* A site is a place in the code that makes one kind of memory reference: a data operand of an
 * instruction, or an instruction fetch; or that makes one kind of another event. 8 bytes.
 *
 * The records of one execution of an instruction come in this order: TRACE_SITE_FETCH or _CODE;
 * _READ, _WRITE and _MODIFY, then _COUNT; _CALL and _TARGET, or _RETURN; _VALUE, also of values
 * that were read before the instruction; _BRANCH. A value is in the context that its _CALL or
 * _RETURN leads to. */
typedef struct trace_site {
    uint32_t instr;  /* index in the instruction table */
    uint16_t bytes;  /* size of one reference, in bytes */
    uint8_t kind;    /* TRACE_SITE_* */
    uint8_t operand; /* 0 for the first data operand of the instruction, 1 for the next */
} trace_site_t;

enum {
    TRACE_SITE_FETCH = 0, /* instruction fetch: address and size are the instruction's */
    TRACE_SITE_READ = 1,
    TRACE_SITE_WRITE = 2,
    TRACE_SITE_MODIFY = 3, /* read and then written at the same address: one reference */
    TRACE_SITE_COUNT = 4,  /* no reference: `value` is how many times a repeated or otherwise
                              variable instruction's data operands were referenced in this
                              execution; sent after its references. For a repeated string
                              instruction that is its number of iterations, and both operands
                              of a two-operand one were referenced so often. */

    /* With trace_capture_calls; no references, `bytes` is 0. They follow the data references of
     * their instruction. */
    TRACE_SITE_CALL = 5,   /* `value` is the stack pointer before the call: what DWARF calls the
                              canonical frame address of the function that is called */
    TRACE_SITE_TARGET = 6, /* right behind the record of an indirect call: `value` is where it
                              goes. Where a direct call goes is in the instruction's bytes */
    TRACE_SITE_RETURN = 7, /* `value` is the stack pointer behind the return */
    TRACE_SITE_STACK = 8,  /* the stack pointer has become `value`, which may lie on another
                              stack: a switch of coroutines, longjmp, the end of a C++ throw, the
                              return from a signal handler */
    TRACE_SITE_SIGNAL = 9, /* a signal handler begins, with this instruction: `value` is the
                              handler's canonical frame address, `aux` the signal's number */
    TRACE_SITE_INTERRUPTED = 10, /* right behind: `value` is the pc of the instruction before which
                                    the handler runs */

    /* With trace_capture_intervals; no references, `bytes` is 0. They are what
     * trace_parser_next_interval adds up. */
    TRACE_SITE_BLOCK_COUNT = 11, /* `value` is how often the thread's slot has entered the block
                                    with index `aux` so far */
    TRACE_SITE_BLOCK_CORRECTION = 12, /* `value`, signed, is how many instructions of the block with
                                         index `aux` belong to the interval beyond that */
    TRACE_SITE_INTERVAL = 13,         /* an interval ends */

    /* With trace_capture_branches; no reference, `bytes` is 0. The instruction's flags say what
     * kind of branch it is. */
    TRACE_SITE_BRANCH = 14, /* `value` is where control goes on: the target, or, of a conditional
                               branch that is not taken, the next instruction. `aux` is 1 if the
                               branch is taken, as all but conditional ones are, else 0 */
    /* With trace_capture_predictions; no reference, `bytes` is 0. */
    TRACE_SITE_PREDICTIONS = 15, /* an instruction that is no branch but predicted like one. Of
                                    a repeated string instruction: `value` is how many branches this
                                    execution was, `aux` how many of them were mispredicted. Of
                                    a locked one there are no records: each execution is one */

    /* With value lists. The records of one execution of an instruction follow one another, in
     * the order of their sites, within one buffer. `value` is the captured value, the site's
     * `operand` says which: a trace_value_t of trace_vlist.h, plus 128 where it has TRACE_BEFORE;
     * TRACE_NONE says only that the instruction was executed. The site's `bytes` are how many the
     * value has, at most 8. trace_parser_next puts them together. */
    TRACE_SITE_VALUE = 16,

    /* With trace_capture_footprints; no reference, `bytes` is 0. `value` has a bit for each byte of
     * the line that is the most recent one of its set, the lowest for the first: those that
     * references have touched which were left out since the line was told of last; it may have
     * others that were told. `aux` / 64 is the set, of which the next reference may bring another
     * line. */
    TRACE_SITE_FOOTPRINT = 17,

    /* With --sample: a burst ends; if `aux` is 1, the thread; if it is 2, the warm-up before a
     * burst. `value` is how many instructions the thread has executed, captured or not. It is the
     * last of its buffer. In a trace file, if `aux` is 3, a warm-up begins, or without any a burst:
     * `value` is how many have been executed before. If it is 4, a warm-up or burst is about to end
     * behind a basic block, and `value` is the address that the thread goes on at. Of a trace file
     * with simulation points, they are the bursts, and 4 does not occur. */
    TRACE_SITE_BURST = 18,
    /* Before that, with predictions: `value` is how often the branch of the block with the index
     * `aux` has been mispredicted in the thread's slot. */
    TRACE_SITE_BLOCK_MISPREDICTIONS = 19,

    /* With trace_capture_code: the fetch of `bytes` bytes of code, from `instr` on. */
    TRACE_SITE_CODE = 20,

    /* With --contexts, and in a buffer of which trace_parser_contexts has contexts: what follows
     * but references is in another one. */
    TRACE_SITE_CONTEXT = 21,

    /* With --objects: something about memory that the program allocates, for assay itself. */
    TRACE_SITE_ALLOCATION = 22,

    /* Right behind the TRACE_SITE_VALUE record of a value that some profiler has asked for with
     * TRACE_WIDE: the next bytes of it, 8 in each record, or as many as the site's `bytes` say in
     * the last. `operand` is that of the value. The sites follow one another, too. */
    TRACE_SITE_VALUE_REST = 23,

    /* With trace_capture_system_calls; no references, `bytes` is 0. The site's instruction is the
     * system call. */
    TRACE_SITE_SYSTEM_CALL = 24, /* `value` is the number, of asm/unistd_64.h. Made when the call
                                    returns, or before it where it may not: exit, exit_group,
                                    execve, execveat and rt_sigreturn */
    TRACE_SITE_SYSTEM_CALL_RESULT = 25, /* of the thread's last one, where it returns: `value` is
                                           the result, an error from -4095 to -1. If `aux` is 1, a
                                           signal came before the call was made: it will be told
                                           again if the handler returns to it */
    TRACE_SITE_SYSTEM_CALL_TIME = 26,   /* right behind, if asked for: `value` is how many
                                           nanoseconds it took, what assay does for it included */

    /* With trace_capture_blocks, and in a trace file: all that follows is of one execution of the
     * site's basic block, until the next such record of the thread. The site's instruction is the
     * block's first one; no reference, `bytes` and `value` are 0. */
    TRACE_SITE_BLOCK = 27,
    TRACE_SITE_BLOCK_LEFT = 28, /* that execution ended early, by a fault or because the program
                                   has changed its code: `value` is how many instructions it was,
                                   one that has faulted among them */
};

/* Kinds of branches, for trace_capture_branches: a set of bits. */
enum {
    TRACE_CONDITIONAL_BRANCHES = 1, /* taken or not; loop and jrcxz among them */
    TRACE_INDIRECT_BRANCHES = 2,    /* jumps and calls through a register or memory */
    TRACE_DIRECT_CALLS = 4,
    TRACE_RETURNS = 8,
};

/* One captured event. A trace buffer is an array of them, in the order in which one thread
 * executed them. 16 bytes. */
typedef struct trace_record {
    uint64_t value; /* a reference: its virtual address (of its first byte) */
    uint32_t site;  /* index in the site table */
    uint32_t aux;   /* 0 in a reference, but see trace_capture_runs, and without meaning in one
                       that trace_parser_contexts has a context of; in a count of a repeated
                       comparison 1 if its result ended it, 0 if rcx did */
} trace_record_t;

/* A calling context: the calls that led to where a thread is, with trace_capture_calls. The index
 * in the context table is its number. Context 0 is outside of all calls; the others are entered
 * from their parent, whose number is lower. A function that is called again before it has returned
 * is in the context of its first entry on that path, but for one that a signal handler calls and
 * the handler interrupted. 24 bytes. */
typedef struct trace_context {
    uint64_t call;     /* pc of the call; for a signal handler, of the instruction before which it
                          runs */
    uint64_t function; /* where the call goes: the first pc of the function, or of the stub that
                          leads there */
    uint32_t parent;
    uint32_t flags; /* TRACE_CONTEXT_* */
} trace_context_t;

enum {
    TRACE_CONTEXT_SIGNAL = 1, /* a signal handler, entered at no call */
};

/* What data references are of, with --objects. Structs of this kind get members only behind the
 * last: compare `size`. */
typedef struct trace_data_object {
    uint32_t size;    /* of this struct, as assay was built */
    uint32_t number;  /* the same for all that is of one object, from 0 upwards. In
                         vp_prof_process it can still become another, of what another thread has
                         allocated whose records are yet to come */
    uint32_t kind;    /* TRACE_DATA_*; more may come */
    uint32_t context; /* TRACE_DATA_HEAP and _MAPPING: of the allocation function or the system
                         call, all of whose blocks are one object; 0 if it is not known */
    uint32_t thread;  /* TRACE_DATA_STACK and _FRAME: whose; 256 stands for all from 256 on */
    uint32_t reserved;
    uint64_t bytes;   /* of a variable, or of each block; 0 if blocks differ, and of others */
    uint64_t blocks;  /* how many have been allocated so far; 0 of others */
    const char* name; /* of a variable, or the path of a file; else "". Never NULL */
} trace_data_object_t;

enum {
    TRACE_DATA_UNKNOWN = 0,
    TRACE_DATA_STATIC = 1,       /* a variable, or a section of a file without any */
    TRACE_DATA_THREAD_LOCAL = 2, /* that of all threads */
    TRACE_DATA_HEAP = 3,         /* blocks of allocation functions */
    TRACE_DATA_MAPPING = 4,      /* memory of no file, by system calls */
    TRACE_DATA_FILE = 5,         /* mapped */
    TRACE_DATA_BREAK = 6,        /* below the program break, outside of blocks */
    TRACE_DATA_STACK = 7,
    TRACE_DATA_FRAME = 8, /* a variable of a function, in all of its frames on a thread's stack */
};

/* A type of data of the program, or a member of one. Structs of this kind get members only behind
 * the last: compare `size`. */
typedef struct trace_data_type {
    uint32_t size;      /* of this struct, as assay was built */
    uint32_t kind;      /* TRACE_TYPE_*; more may come */
    uint32_t outer;     /* of a member: the number of the type that has it, or of the member whose
                           part it is; 0 of a type */
    uint32_t members;   /* the number of the first member, by offset; 0 if there is none. Of a type,
                           all are there; of a member, those that were referred to */
    uint32_t next;      /* of a member: the number of the next one of `outer`; 0 of the last */
    uint32_t first_bit; /* of a bit-field, from the lowest of the byte at `offset` on */
    uint32_t bits;      /* of a bit-field, else 0 */
    uint32_t bit_fields; /* of a member: how many it stands for, 1 but of bit-fields that were
                            referred to in one: these follow each on its own, too */
    uint64_t offset;     /* of a member, in `outer`'s outermost type */
    uint64_t bytes;      /* 0 if that is not known, and of an array without a bound */
    uint64_t alignment;  /* that its kind of data has, a power of two */
    const char* name;    /* "node", "next"; never NULL. A base class has its type's */
    const char* type;    /* of a member, "node *"; else "" */
    const char* file;    /* where a struct is declared, "" if that is not known */
    uint32_t line;       /* likewise; 0 */
    uint32_t reserved;
} trace_data_type_t;

enum {
    TRACE_TYPE_MEMBER = 0,
    TRACE_TYPE_STRUCT = 1, /* or class */
    TRACE_TYPE_UNION = 2,
    TRACE_TYPE_POINTER = 3,
    TRACE_TYPE_OTHER = 4, /* a number, an enumeration, or a struct whose members are not known */
};

/* What the program said with assay/client.h, or what assay notes among the records. Operations that
 * are not known are to be skipped: more may come. 48 bytes. */
typedef struct trace_marker {
    uint64_t record;    /* the record of the buffer before which it was said: an index, or their
                           number behind the last */
    uint64_t operation; /* ASSAY_BEGIN_PHASE and those behind it, of client.h; TRACE_MARKER_* */
    uint64_t address;   /* of a region or of pages; the number of a thread, or of sites; else 0 */
    uint64_t bytes;     /* of a region that is registered, or of pages, else 0 */
    const char* name;  /* of a phase; the label of a region that is registered; else "". In texts of
                          the program, control characters but tabs, and what is not UTF-8, have
                          become \xHH */
    const char* owner; /* of a region that is registered, else "" */
} trace_marker_t;

enum {
    TRACE_MARKER_THREAD = 256,     /* the thread creates another one, whose number is `address` */
    TRACE_MARKER_THREAD_END = 257, /* the thread ends: nothing of it follows. Of those that are
                                      there when the program ends, it is not said. `address` is how
                                      many sites there are: what another thread does once it has
                                      come to a later one, it does behind that end */

    /* With trace_capture_mappings: what pages the memory has from here on, `bytes` of it from
     * `address` on, both multiples of 2 MiB. Of what has not been told of: 4 KiB. */
    TRACE_MARKER_PAGES_4K = 258,
    TRACE_MARKER_PAGES_PRIVATE = 259, /* of no file, and the process's own: can have transparent
                                         huge pages, of 2 MiB, where all such memory has them */
    TRACE_MARKER_PAGES_ADVISED = 260, /* likewise, also where only memory has them for which the
                                         program asks, with madvise(MADV_HUGEPAGE) */
    TRACE_MARKER_PAGES_2M = 261,      /* hugetlb pages */
    TRACE_MARKER_PAGES_1G = 262,
    TRACE_MARKER_PAGES_SEEN = 263, /* from here on the thread knows what others have done to pages:
                                      the first `address` of these markers of the process, in the
                                      order in which they arrive */
};

/* What a thread executed of a block in an interval. 16 bytes. */
typedef struct trace_interval_block {
    uint64_t instructions; /* of the block, executed in the interval; never 0 */
    uint32_t block;        /* index in the block table */
    uint32_t reserved;
} trace_interval_block_t;

/* An interval of a thread, with trace_capture_intervals. */
typedef struct trace_interval {
    uint32_t size;         /* of this struct, as assay was built */
    uint32_t thread;       /* as trace_parser_get_thread says it */
    uint32_t complete;     /* 1; 0 for what a thread has executed since its last one */
    uint32_t block_count;  /* of `blocks` */
    uint64_t instructions; /* executed in it: the sum over `blocks` */
    const trace_interval_block_t* blocks; /* by their index, each once */
} trace_interval_t;

/* An ELF file mapped for execution. */
typedef struct trace_object {
    uint64_t start;   /* first virtual address of the mapping */
    uint64_t end;     /* first virtual address behind it */
    uint64_t offset;  /* of the mapping in the file, bytes */
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
