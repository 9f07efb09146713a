/* One case of csrc/emu/base/guarded.c, named by the first argument; test_guarded.py says how each ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../csrc/emu/base/guarded.h"

enum { BYTES = 1000 };

int main(int n, char **arguments) {
    const char *name = n > 1 ? arguments[1] : "";
    const long at = n > 2 ? atol(arguments[2]) : 0;
    guarded_arena arena = {0};
    volatile unsigned char *p = guarded_alloc(BYTES);
    if (!p || (size_t)p % GUARDED_ALIGN) return 2;
    memset((void *)p, 1, BYTES);
    if (!strcmp(name, "write")) {
        p[at] = 7;
    } else if (!strcmp(name, "read")) {
        printf("%d\n", p[at]);
    } else if (!strcmp(name, "arena")) {
        volatile unsigned char *a = guarded_arena_alloc(&arena, BYTES);
        volatile unsigned char *b = guarded_arena_alloc(&arena, 1 << 20);
        if (!a || !b || (size_t)a % GUARDED_ARENA_ALIGN) return 2;
        memset((void *)a, 1, BYTES);
        memset((void *)b, 2, 1 << 20);
        for (int k = 0; k < BYTES; k++)
            if (a[k] != 1) return 3;
        if (at) b[at] = 7;
    } else if (!strcmp(name, "again")) { /* what was given back serves again, and is not zeros */
        guarded_free((void *)p, BYTES);
        unsigned char *again = guarded_alloc(BYTES);
        unsigned char *zeros = guarded_zeros(BYTES);
        if (again != p || zeros == p) return 3;
        for (int k = 0; k < BYTES; k++)
            if (zeros[k]) return 4;
        guarded_free(zeros, BYTES);
    } else if (!strcmp(name, "nothing")) {
        void *empty = guarded_alloc(0);
        if (!empty || guarded_alloc((size_t)-1)) return 3;
        guarded_free(empty, 0);
        guarded_free(NULL, BYTES);
    }
    guarded_free((void *)p, BYTES);
    guarded_arena_free(&arena);
    guarded_trim();
    puts("done");
    return 0;
}
