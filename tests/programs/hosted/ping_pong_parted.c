// ping_pong.c as effective_address advises.
#define PARTED
#include "ping_pong.c"
