// A library as small as can be: mapped_code.c loads it in two versions.
int answer(void);

int answer(void) {
    return ANSWER;
}
