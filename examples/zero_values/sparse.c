/* Adds up an array of 1000 numbers, 900 of them zero. */
static volatile int sparse[1000];
static volatile int result;

static void add_up(void) {
    int sum = 0;
    for (int i = 0; i < 1000; ++i) sum += sparse[i];
    result = sum;
}

int main(void) {
    for (int i = 0; i < 1000; i += 10) sparse[i] = i + 1;
    add_up();
    return 0;
}
