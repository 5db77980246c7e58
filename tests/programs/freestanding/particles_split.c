// particles.c as struct_layout advises.
#define SPLIT
#include "particles.c"
