/* Counts how often each word occurs in a text that it makes itself. Looks up each word in a list.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    char text[12];
    int count;
    struct word* next;
};

static struct word* words;

static struct word* find(const char* text) {
    for (struct word* word = words; word; word = word->next)
        if (strcmp(word->text, text) == 0) return word;
    return NULL;
}

static void count(const char* text) {
    struct word* word = find(text);
    if (!word) {
        word = calloc(1, sizeof *word);
        if (!word) abort();
        strcpy(word->text, text);
        word->next = words;
        words = word;
    }
    ++word->count;
}

static int most_frequent(void) {
    int most = 0;
    for (struct word* word = words; word; word = word->next)
        if (word->count > most) most = word->count;
    return most;
}

int main(void) {
    unsigned random = 1;
    for (int i = 0; i < 20000; ++i) {
        char text[12];
        random = random * 1103515245 + 12345;
        snprintf(text, sizeof text, "word%u", random / 65536 % 1000);
        count(text);
    }
    printf("%d\n", most_frequent());
    return 0;
}
