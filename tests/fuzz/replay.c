/* Where there is no libFuzzer: runs each file that is named, and so many mutations of it.
 *
 *     fuzz_ptx [-runs=N] [-seed=N] FILE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { MOST_BYTES = 1 << 16 };

static unsigned state = 1;

static unsigned next(void) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* What libFuzzer would do to bytes: some are changed, some go, some come. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) {
    for (unsigned times = 1 + next() % 4; times; times--) {
        const size_t at = size ? next() % size : 0;
        switch (next() % 3) {
        case 0:
            if (size) data[at] ^= (uint8_t)(1u << next() % 8);
            break;
        case 1:
            if (size == most) break;
            memmove(data + at + 1, data + at, size - at);
            data[at] = (uint8_t)next();
            size++;
            break;
        default:
            if (!size) break;
            memmove(data + at, data + at + 1, size - at - 1);
            size--;
        }
    }
    return size;
}

/* Of targets whose input is no text; others bring their own. */
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                                                     unsigned seed) {
    (void)seed;
    return LLVMFuzzerMutate(data, size, most);
}

static void run_file(const char *path, unsigned runs) {
    static uint8_t whole[MOST_BYTES], data[MOST_BYTES];
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(2);
    }
    const size_t size = fread(whole, 1, sizeof whole, file);
    fclose(file);
    LLVMFuzzerTestOneInput(whole, size);
    for (unsigned k = 0; k < runs; k++) {
        memcpy(data, whole, size);
        LLVMFuzzerTestOneInput(data, LLVMFuzzerCustomMutator(data, size, sizeof data, next()));
    }
}

int main(int n, char **arguments) {
    unsigned runs = 0, files = 0;
    for (int k = 1; k < n; k++)
        if (sscanf(arguments[k], "-runs=%u", &runs) != 1 &&
            sscanf(arguments[k], "-seed=%u", &state) != 1) {
            run_file(arguments[k], runs);
            files++;
        }
    printf("%u inputs, %u runs\n", files, files * (runs + 1));
    return 0;
}
