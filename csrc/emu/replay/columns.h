/* The columns of a recording: growing arrays of little-endian integers. */
#ifndef EMU_REPLAY_COLUMNS_H
#define EMU_REPLAY_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name, bytes per element) */
#define COLUMN_MAP(X)                                                                              \
    X(step_warp, 4)                                                                                \
    X(step_instruction, 4)                                                                         \
    X(step_active, 4)                                                                              \
    X(step_executed, 4)                                                                            \
    X(first_delta, 4)                                                                              \
    X(first_access, 4)                                                                             \
    X(first_write, 4)                                                                              \
    X(first_event, 4)                                                                              \
    X(delta_warp, 2)                                                                               \
    X(delta_register, 4)                                                                           \
    X(delta_kind, 1)                                                                               \
    X(delta_at, 4)                                                                                 \
    X(access_operation, 1)                                                                         \
    X(access_memory, 4)                                                                            \
    X(access_space, 1)                                                                             \
    X(access_width, 1)                                                                             \
    X(access_active, 4)                                                                            \
    X(access_kind, 1)                                                                              \
    X(access_at, 4)                                                                                \
    X(access_cost, 2)                                                                              \
    X(access_ideal, 2)                                                                             \
    X(access_waves, 4)                                                                             \
    X(access_words, 4)                                                                             \
    X(write_memory, 4)                                                                             \
    X(write_word, 4)                                                                               \
    X(write_value, 4)                                                                              \
    X(write_warp, 4)                                                                               \
    X(write_lane, 1)                                                                               \
    X(write_step, 4)                                                                               \
    X(event_kind, 1)                                                                               \
    X(event_warp, 4)                                                                               \
    X(event_lanes, 4)                                                                              \
    X(event_object, 4)                                                                             \
    X(event_flags, 1)                                                                              \
    X(words, 4)                                                                                    \
    X(waves, 1)                                                                                    \
    X(initial_warp, 4)                                                                             \
    X(initial_register, 4)                                                                         \
    X(initial_kind, 1)                                                                             \
    X(initial_at, 4)                                                                               \
    X(memory_words, 4)                                                                             \
    X(memory_warp, 4)                                                                              \
    X(memory_lane, 1)                                                                              \
    X(memory_instruction, 4)

typedef enum column_name {
#define X(name, bytes) COLUMN_##name,
    COLUMN_MAP(X)
#undef X
        N_COLUMNS
} column_name;

typedef struct column {
    unsigned char *bytes;
    size_t n, capacity; /* elements */
} column;

typedef struct columns {
    column column[N_COLUMNS];
    bool out_of_memory;
} columns;

extern const unsigned char column_bytes[N_COLUMNS];
extern const char *const column_names[N_COLUMNS];

void column_push(columns *c, column_name name, uint32_t value);
/* Room for n more elements, set to zero; NULL: n is 0, or out of memory, and the flag is set. */
void *column_extend(columns *c, column_name name, size_t n);
uint32_t column_value(const columns *c, column_name name, size_t k);
void column_set(columns *c, column_name name, size_t k, uint32_t value);
void columns_free(columns *c);
size_t columns_size(const columns *c); /* bytes of all elements */

#define PUSH(r, name, value) column_push(&(r)->columns, COLUMN_##name, (uint32_t)(value))
#define COUNT(r, name)       ((r)->columns.column[COLUMN_##name].n)

#endif
