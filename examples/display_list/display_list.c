/* Draws frames of a scene, as a browser does. Each frame builds a list of the visible shapes in
 * an arena, paints it, and empties the arena. The program tells assay about its phases and
 * arenas.
 *
 *     display_list            shapes as declared
 *     display_list --split    keeps the members for building apart from the rest
 */
#include <assay/client.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPES = 20000, FRAMES = 3, VISIBLE = 4 /* one of four shapes */ };

/* An arena of registered chunks. */
enum { CHUNK = 65536, MOST_CHUNKS = 256 };
struct arena {
    const char *owner, *label;
    char* chunks[MOST_CHUNKS];
    int count;
    size_t used; /* of the last chunk */
};

static void* allocate(struct arena* arena, size_t bytes) {
    if (arena->count == 0 || arena->used + bytes > CHUNK) {
        char* const chunk = aligned_alloc(64, CHUNK);
        if (!chunk || arena->count == MOST_CHUNKS) abort();
        assay_register_region(chunk, CHUNK, arena->owner, arena->label);
        arena->chunks[arena->count++] = chunk;
        arena->used = 0;
    }
    arena->used += bytes;
    return arena->chunks[arena->count - 1] + arena->used - bytes;
}
static void empty(struct arena* arena) {
    while (arena->count > 0) {
        char* const chunk = arena->chunks[--arena->count];
        assay_unregister_region(chunk);
        free(chunk);
    }
}

/* The members of a shape for building, and those for painting only. */
struct box {
    float x, y, width, height;
};
struct style {
    uint32_t colour, border;
    char name[40];
};
struct shape {
    struct box box;
    struct style style;
};
struct item {
    const struct style* style;
    struct box box;
    struct item* next;
};

static struct box* boxes[SHAPES];
static struct style* styles[SHAPES];

static void load_scene(struct arena* scene, int split) {
    for (int i = 0; i < SHAPES; ++i) {
        struct shape* const shape = split ? NULL : allocate(scene, sizeof *shape);
        boxes[i] = split ? allocate(scene, sizeof *boxes[i]) : &shape->box;
        styles[i] = split ? NULL : &shape->style;
    }
    for (int i = 0; split && i < SHAPES; ++i) styles[i] = allocate(scene, sizeof *styles[i]);
    for (int i = 0; i < SHAPES; ++i) {
        *boxes[i] = (struct box){(float)(i % VISIBLE) * 1000, (float)i, 10, 10};
        styles[i]->colour = (uint32_t)i * 2654435761u;
        snprintf(styles[i]->name, sizeof styles[i]->name, "shape %d", i);
    }
}

static struct item* build(struct arena* items) {
    struct item* list = NULL;
    for (int i = 0; i < SHAPES; ++i) {
        if (boxes[i]->x >= 1000) continue; /* outside of the window */
        struct item* const item = allocate(items, sizeof *item);
        *item = (struct item){styles[i], *boxes[i], list};
        list = item;
    }
    return list;
}

static uint32_t paint(const struct item* list) {
    uint32_t pixels = 0;
    for (; list; list = list->next)
        pixels = pixels * 31 + list->style->colour + (uint32_t)list->box.y;
    return pixels;
}

int main(int argc, char** argv) {
    const int split = argc == 2 && strcmp(argv[1], "--split") == 0;
    struct arena scene = {.owner = "document", .label = "shapes"};
    struct arena items = {.owner = "display list", .label = "items"};
    load_scene(&scene, split);
    for (int frame = 0; frame < FRAMES; ++frame) {
        assay_begin_phase("build");
        struct item* const list = build(&items);
        assay_end_phase("build");
        assay_begin_phase("paint");
        printf("%08x\n", paint(list));
        assay_end_phase("paint");
        empty(&items);
    }
    return 0;
}
