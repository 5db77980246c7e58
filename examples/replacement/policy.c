/* A replacement policy: LIP (Qureshi, Jaleel, Patt, Steely and Emer, "Adaptive insertion policies
 * for high performance caching", ISCA 2007). As under LRU, the least recently used line of a set
 * is replaced. But a new line enters as the least recently used one, and only a hit makes it the
 * most recent. Lines that are used once therefore replace one another. */
#include <assay/cache_policy.h>

#include <stdlib.h>

typedef struct {
    uint32_t ways;
    int64_t newest, oldest; /* ranks given so far */
    int64_t rank[];         /* by way of each set; the line with the lowest rank is replaced */
} lip_t;

static void* create(uint64_t sets, uint32_t ways, uint64_t seed) {
    (void)seed; /* nothing here is random */
    lip_t* lip = calloc(1, sizeof(lip_t) + sets * ways * sizeof(int64_t));
    if (lip) lip->ways = ways;
    return lip;
}

static void hit(void* self, uint64_t set, uint32_t way, const cp_access_t* access) {
    lip_t* lip = self;
    (void)access;
    lip->rank[set * lip->ways + way] = ++lip->newest;
}

static void fill(void* self, uint64_t set, uint32_t way, const cp_access_t* access) {
    lip_t* lip = self;
    (void)access;
    lip->rank[set * lip->ways + way] = --lip->oldest; /* LRU: ++lip->newest */
}

static uint32_t victim(void* self, uint64_t set, const cp_access_t* access) {
    const lip_t* lip = self;
    const int64_t* rank = lip->rank + set * lip->ways;
    uint32_t lowest = 0;
    (void)access;
    for (uint32_t way = 1; way < lip->ways; ++way)
        if (rank[way] < rank[lowest]) lowest = way;
    return lowest;
}

const cp_replacement_t assay_replacement = {
    .size = sizeof(cp_replacement_t),
    .version = CP_VERSION,
    .create = create,
    .destroy = free,
    .hit = hit,
    .victim = victim,
    .fill = fill,
};
