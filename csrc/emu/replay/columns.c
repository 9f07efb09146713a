/* Growing arrays; see columns.h. */
#include "columns.h"

#include <stdlib.h>
#include <string.h>

const unsigned char column_bytes[N_COLUMNS] = {
#define X(name, bytes) [COLUMN_##name] = bytes,
    COLUMN_MAP(X)
#undef X
};

const char *const column_names[N_COLUMNS] = {
#define X(name, bytes) [COLUMN_##name] = #name,
    COLUMN_MAP(X)
#undef X
};

/* Positions in columns are 32-bit numbers. */
static const size_t max_elements = UINT32_MAX - 1;

static bool reserve(columns *c, column_name name, size_t n) {
    column *to = &c->column[name];
    if (n <= to->capacity - to->n) return true;
    size_t capacity = to->capacity ? to->capacity + to->capacity / 2 : 1024;
    if (capacity < to->n + n) capacity = to->n + n;
    unsigned char *larger =
        capacity <= max_elements ? realloc(to->bytes, capacity * column_bytes[name]) : NULL;
    if (!larger) {
        c->out_of_memory = true;
        return false;
    }
    to->bytes = larger;
    to->capacity = capacity;
    return true;
}

void column_push(columns *c, column_name name, uint32_t value) {
    if (!reserve(c, name, 1)) return;
    column *to = &c->column[name];
    memcpy(to->bytes + to->n++ * column_bytes[name], &value, column_bytes[name]);
}

void *column_extend(columns *c, column_name name, size_t n) {
    if (!n || !reserve(c, name, n)) return NULL;
    column *to = &c->column[name];
    void *const added = to->bytes + to->n * column_bytes[name];
    memset(added, 0, n * column_bytes[name]);
    to->n += n;
    return added;
}

uint32_t column_value(const columns *c, column_name name, size_t k) {
    uint32_t value = 0;
    memcpy(&value, c->column[name].bytes + k * column_bytes[name], column_bytes[name]);
    return value;
}

void column_set(columns *c, column_name name, size_t k, uint32_t value) {
    memcpy(c->column[name].bytes + k * column_bytes[name], &value, column_bytes[name]);
}

void columns_free(columns *c) {
    for (int k = 0; k < N_COLUMNS; k++)
        free(c->column[k].bytes);
    memset(c, 0, sizeof *c);
}

size_t columns_size(const columns *c) {
    size_t bytes = 0;
    for (int k = 0; k < N_COLUMNS; k++)
        bytes += c->column[k].n * column_bytes[k];
    return bytes;
}
