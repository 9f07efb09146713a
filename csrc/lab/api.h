/* The laboratory page's module: the emulator, the planner and the bank model behind plain C
 * functions, for JavaScript (docs/lab/emulator.js, the only caller).
 *
 * A module instance is one session: a PTX text, buffers, and one job (launches with arguments).
 * Numbers and pointers into linear memory go in; results are JSON, NUL-terminated UTF-8, valid
 * until the next call. Functions that return smk_code put the reason into lab_error. All numbers
 * are checked here: the page passes what its reader types.
 */
#ifndef LAB_API_H
#define LAB_API_H

#include <stddef.h>
#include <stdint.h>

/* Memory for arguments. lab_alloc: NULL if there is none. */
void *lab_alloc(size_t bytes);
void lab_free(void *p);

/* Of the last failed call: the name of its code in lower case ("value"), and its message. */
const char *lab_error_kind(void);
const char *lab_error(void);

/* Frees the PTX, its module variables, the buffers and the job. */
void lab_reset(void);

/* Takes a PTX text. Module variables have their initial values again; the job is dropped. */
int lab_load(const char *ptx, size_t size);
/* What the source says of the PTX's arrays in shared memory, for words and recordings, as lines
 * "name element-bytes columns rows"; 0: there are none of these, or they are not known. */
int lab_arrays(const char *lines);
/* Its kernels and their parameters, into lab_result. */
int lab_entries(void);

/* The JSON (or bytes) that the last successful call made. */
const char *lab_result(void);
size_t lab_result_bytes(void);

/* A buffer of zeros. access: of smk_buffer; 0: a workspace, whose contents start as NaN. Returns
 * its index, or -1. */
int lab_buffer(double bytes, int access);
unsigned char *lab_buffer_at(int index); /* NULL: there is none, or it is a workspace */
size_t lab_buffer_bytes(int index);
void lab_drop_buffers(void);
/* How hazards name the buffer's bytes: "x, element (3, 5)". columns 0: one dimension. */
int lab_name_buffer(int index, const char *name, uint32_t element_bytes, double columns);
/* Fills it with elements of a type ("f32", ...). pattern 0: constant `low`; 1: low + index * high;
 * 2: random in [low, high), integers including high, by the counter-based generator of data.c. */
int lab_fill(int index, const char *type, int pattern, uint32_t seed, double low, double high);

/* Makes the job one launch of a kernel (NULL: the only one). shape: grid, block and cluster, three
 * numbers each; a cluster of zeros: as the kernel states. */
int lab_launch(const char *entry, const uint32_t shape[9], int cooperative, uint32_t shared_bytes);
/* The launch's arguments, by the parameter's number: a buffer's address, or bytes. */
int lab_argument_buffer(uint32_t parameter, int buffer, double offset);
int lab_argument_bytes(uint32_t parameter, const void *bytes, size_t size);
/* An argument that is a tensor map by value, or a pointer to one; see smk_tensor_map. type: NumPy's
 * name. The tensor begins `offset` bytes into the buffer. dimensions: of each dimension, innermost
 * first, its size, the bytes from one element to the next (not of the innermost), the box's extent
 * and the element stride. swizzle: 0, or the span's bytes. A pointer takes a further buffer, which
 * holds the map. */
int lab_argument_tensor(uint32_t parameter, int buffer, double offset, const char *type,
                        uint32_t rank, const double *dimensions, uint32_t swizzle, int fill_nan);

/* The table of variants. */
int lab_variants(void);
/* The file name of a variant's PTX. settings: "tile=32 pad=1". */
int lab_image(const char *op, const char *variant, const char *dtype, const char *settings);
/* Makes the job the launches of a variant, and the buffers it needs in place of all others.
 * sizes: M, N, K of gemm; rows and columns of transpose; elements of probe. */
int lab_plan(const char *op, const char *variant, const char *dtype, const char *settings,
             const double sizes[3]);

enum {
    LAB_TRACE = 1,
    LAB_HAZARDS = 2,
    LAB_EQUAL_WRITES = 4,
    LAB_BY_INSTRUCTION = 8,
};

/* What lab_run records (core/recording.h): `steps` steps from `first` on, of these blocks (NULL:
 * all) and these warps of each block (NULL: all), in at most max_bytes. steps 0: records
 * nothing. */
int lab_record(double first, double steps, double max_bytes, const double *blocks, size_t n_blocks,
               const uint32_t *warps, size_t n_warps);
/* The recording of the last run. NULL: there is none. */
const unsigned char *lab_recording(void);
size_t lab_recording_bytes(void);

/* Runs the job. max_instructions: of all warps, per launch; 0: no limit. blocks: the blocks to run,
 * as smk_job numbers them; NULL: all. */
int lab_run(int flags, double max_instructions, const double *blocks, size_t n_blocks);

/* Compiles CUDA C++ (lab/compiler); the PTX is lab_result, as a text. `name`: of the file. */
int lab_compile_source(const char *name, const char *source, size_t size);

/* The bank model (emu/cost/banks.h) for one request. kind 0: load, 1: store, 2: atomic, 3:
 * ldmatrix. out: wavefronts, ideal, lanes per group, sectors, ideal sectors; then the wavefront of
 * each lane, counted from 0, -1 for inactive lanes. */
enum { LAB_BANKS_NUMBERS = 5 + 32 };
int lab_banks(const double address[32], uint32_t active, uint32_t width, int kind,
              int32_t out[LAB_BANKS_NUMBERS]);

/* Words (emu/cost/explain.h), into lab_result: "conflict", why the first of n requests costs what
 * it costs (null: no lane is active), and "layout", a better one for all of them (null: nothing is
 * known of the array). op: as a trace names accesses. address: 32 per request; numbers: mask of
 * active lanes, wavefronts and ideal per request. The array: its name (NULL: none is known), first
 * byte, bytes, bytes per element, columns, rows. */
int lab_explain(const char *op, uint32_t width, const double *address, const uint32_t *numbers,
                size_t n, const char *name, const double shape[5]);

#endif
