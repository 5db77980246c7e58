# Writes {number, "name"}, for each system call that the kernel's header asm/unistd_64.h has.
# $@: a C compiler.
echo '#include <asm/unistd_64.h>' | "$@" -E -dM - |
    sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9][0-9]*\)$/{\2, "\1"},/p' | sort -t '{' -k 2 -n
