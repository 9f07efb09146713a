/* Copies between the caller's memory and a stage, made so that the bus does not wait for them. */
#ifndef SMK_PIPELINE_STREAM_COPY_H
#define SMK_PIPELINE_STREAM_COPY_H

#include <stdbool.h>
#include <stddef.h>

/* Some lines of bytes, `pitch` apart; it may be negative. */
typedef struct lines {
    char *at;
    ptrdiff_t pitch;
} lines;

/* n lines of `width` bytes. When it returns other threads and the device may be told of them. `spare_memory`: where
 * memory is what the call will wait for, and not its threads. */
void copy_rows_to_stage(lines stage, lines from, size_t width, size_t n, bool spare_memory);
void copy_rows_from_stage(lines to, lines stage, size_t width, size_t n);

#endif
