/* Fills an array with one value twice, then with another. 1000 of 3000 stores change nothing. */
static volatile int cells[1000];

static void fill(int value) {
    for (int i = 0; i < 1000; ++i) cells[i] = value;
}

int main(void) {
    fill(1);
    fill(1);
    fill(2);
    return 0;
}
