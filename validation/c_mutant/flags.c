/* Which basic blocks have run: the callbacks of clang's -fsanitize-coverage=inline-bool-flag,pc-table, for
 * c_mutant/reach.py. A process that a test starts leaves its flags in the folder that C_MUTANT_FLAGS
 * names. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED uint8_t *c_mutant_flags, *c_mutant_flags_end;
EXPORTED const uintptr_t *c_mutant_blocks, *c_mutant_blocks_end; /* address and flags of each */

/* Each file's constructor gives the section's start and end, which are the library's. */
EXPORTED void __sanitizer_cov_bool_flag_init(uint8_t *start, uint8_t *end) {
    c_mutant_flags = start;
    c_mutant_flags_end = end;
}

EXPORTED void __sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *end) {
    c_mutant_blocks = start;
    c_mutant_blocks_end = end;
}

__attribute__((destructor)) static void leave(void) {
    const char *folder = getenv("C_MUTANT_FLAGS");
    char name[4096];
    if (!folder) return;
    snprintf(name, sizeof name, "%s/%d", folder, (int)getpid());
    FILE *out = fopen(name, "wb");
    if (!out) return;
    fwrite(c_mutant_flags, 1, (size_t)(c_mutant_flags_end - c_mutant_flags), out);
    fclose(out);
}
