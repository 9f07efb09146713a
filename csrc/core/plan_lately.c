/* What this thread has chosen lately. */
#include "plan_parts.h"

#include <string.h>

chosen_lately *lately(const int64_t key[LATELY_WORDS], bool *known) {
    enum { CHOICES = 256 };
    static _Thread_local chosen_lately all[CHOICES];
    uint64_t hash = 0;
    for (int i = 0; i < LATELY_WORDS; i++)
        hash = (hash ^ (uint64_t)key[i]) * 0x9E3779B97F4A7C15u;
    chosen_lately *at = &all[hash >> 56];
    *known = !memcmp(at->key, key, sizeof at->key);
    if (!*known) memcpy(at->key, key, sizeof at->key);
    return at;
}
