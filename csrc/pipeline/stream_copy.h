/* Copies between the caller's memory and staging buffers that do not slow down the bus. */
#ifndef SMK_PIPELINE_STREAM_COPY_H
#define SMK_PIPELINE_STREAM_COPY_H

#include <stdbool.h>
#include <stddef.h>

/* Rows of bytes; `pitch` is the distance from row to row, and may be negative. */
typedef struct byte_rows {
    char *first;
    ptrdiff_t pitch;
} byte_rows;

/* `height` rows of `width` bytes. On return the data is globally visible. `memory_bound`: the call
 * is limited by host memory rather than by its threads. */
void copy_rows_to_stage(byte_rows stage, byte_rows from, size_t width, size_t height,
                        bool memory_bound);
void copy_rows_from_stage(byte_rows to, byte_rows stage, size_t width, size_t height);

#endif
