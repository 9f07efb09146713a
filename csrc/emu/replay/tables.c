/* Numbers of functions, blocks, warps and memories, given as they are first seen. */
#include <stdlib.h>
#include <string.h>

#include "recorder.h"

bool recorder_room(recorder *r, void **items, size_t size, size_t n, size_t *capacity) {
    if (n < *capacity) return true;
    const size_t larger = *capacity ? 2 * *capacity : 16;
    void *grown = larger <= SIZE_MAX / size ? realloc(*items, larger * size) : NULL;
    if (!grown) {
        r->out_of_memory = true;
        return false;
    }
    *items = grown;
    *capacity = larger;
    return true;
}

/* ---- functions ---- */

/* The registers of an operand. Returns how many; `out` NULL: only counts them. */
static uint32_t operand_registers(const ptx_operand *o, uint32_t *out) {
    uint32_t n = 0;
    if (o->kind == PTX_REGISTER) {
        if (out) out[n] = o->reg;
        n++;
    }
    for (uint32_t k = 0; o->kind == PTX_VECTOR && k < o->n_items; k++)
        n += operand_registers(&o->items[k], out ? out + n : NULL);
    if (o->pair) n += operand_registers(o->pair, out ? out + n : NULL);
    return n;
}

static uint32_t written_registers(const ptx_instruction *p, uint32_t *out) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_operands; k++)
        if (ptx_operand_is_destination(p, k))
            n += operand_registers(&p->operands[k], out ? out + n : NULL);
    return n;
}

static bool find_writes(recorded_function *f) {
    const ptx_function *function = f->function;
    uint32_t n = 0;
    f->first_write = malloc((function->n_instructions + 1) * sizeof *f->first_write);
    for (uint32_t k = 0; f->first_write && k < function->n_instructions; k++) {
        f->first_write[k] = n;
        n += written_registers(&function->instructions[k], NULL);
    }
    f->writes = malloc((n + 1) * sizeof *f->writes);
    if (!f->first_write || !f->writes) return false;
    f->first_write[function->n_instructions] = n;
    for (uint32_t k = 0; k < function->n_instructions; k++)
        written_registers(&function->instructions[k], f->writes + f->first_write[k]);
    return true;
}

/* About what header.c writes. */
static size_t header_bytes_of(const ptx_function *f) {
    enum { PER_INSTRUCTION = 250, PER_REGISTER = 50 };
    size_t bytes = (size_t)f->n_registers * PER_REGISTER;
    for (uint32_t k = 0; k < f->n_instructions; k++)
        bytes += PER_INSTRUCTION + strlen(f->instructions[k].text);
    return bytes;
}

uint32_t recorder_function(recorder *r, const ptx_function *function) {
    for (size_t k = r->functions.n; k-- > 0;)
        if (r->functions.items[k].function == function) return (uint32_t)k;
    recorded_function f = {.function = function,
                           .first_instruction = r->n_instructions,
                           .first_register = r->n_registers};
    if (!LIST_ROOM(r, &r->functions) || !find_writes(&f)) {
        free(f.writes);
        free(f.first_write);
        r->out_of_memory = true;
        return NONE;
    }
    r->n_instructions += function->n_instructions;
    r->n_registers += function->n_registers;
    r->header_bytes += header_bytes_of(function);
    r->functions.items[r->functions.n] = f;
    return (uint32_t)r->functions.n++;
}

const ptx_instruction *recorder_instruction(const recorder *r, uint32_t number) {
    for (size_t k = r->functions.n; k-- > 0;) {
        const recorded_function *f = &r->functions.items[k];
        if (number >= f->first_instruction)
            return &f->function->instructions[number - f->first_instruction];
    }
    return NULL;
}

/* ---- blocks, warps, memories ---- */

static uint32_t add_memory(recorder *r, memory_kind kind, uint32_t of, uint64_t bytes) {
    if (!LIST_ROOM(r, &r->memories)) return NONE;
    r->memories.items[r->memories.n] = (recorded_memory){kind, of, bytes, NONE, 0};
    return (uint32_t)r->memories.n++;
}

bool recorder_start_memories(recorder *r) {
    for (size_t k = 0; k < r->job->n_buffers; k++)
        if (add_memory(r, MEMORY_ARRAY, (uint32_t)k, r->job->buffers[k].bytes) == NONE)
            return false;
    return add_memory(r, MEMORY_VARIABLES, 0, 0) != NONE;
}

uint32_t recorder_global(const recorder *r, uint64_t region) {
    if (region >= REGION_BUFFERS && region - REGION_BUFFERS < r->job->n_buffers)
        return (uint32_t)(region - REGION_BUFFERS);
    return region == REGION_GLOBAL ? (uint32_t)r->job->n_buffers : NONE;
}

static uint64_t number_of(const recorder *r, const uint32_t index[3]) {
    const uint32_t *grid = r->launch->grid;
    return r->launch->first_block + index[0] +
           (uint64_t)grid[0] * (index[1] + (uint64_t)grid[1] * index[2]);
}

/* Index of a live block; NONE: not recorded. */
static uint32_t block_of(recorder *r, uint32_t member) {
    live_block *b = &r->members.items[member];
    if (!b->recorded || b->id != NONE) return b->id;
    if (!LIST_ROOM(r, &r->blocks)) return NONE;
    const uint32_t id = (uint32_t)r->blocks.n;
    recorded_block block = {.launch = (uint32_t)r->launches.n - 1,
                            .memory = add_memory(r, MEMORY_SHARED, id, 4 * (uint64_t)b->n_words),
                            .number = number_of(r, b->index)};
    memcpy(block.index, b->index, sizeof block.index);
    if (block.memory == NONE) return NONE;
    r->blocks.items[r->blocks.n++] = block;
    return b->id = id;
}

uint32_t recorder_shared(recorder *r, uint32_t member) {
    const uint32_t block = block_of(r, member);
    return block == NONE ? NONE : r->blocks.items[block].memory;
}

uint32_t recorder_warp(recorder *r, uint32_t member, uint32_t warp) {
    enum { MAX_RECORDED_WARPS = UINT16_MAX };
    live_block *b = &r->members.items[member];
    live_warp *w = &b->warps[warp];
    const uint32_t *shape = r->launch->block;
    if (w->id != NONE) return w->id;
    const uint32_t block = block_of(r, member);
    if (block == NONE || r->warps.n == MAX_RECORDED_WARPS || !LIST_ROOM(r, &r->warps)) return NONE;
    const uint32_t left = shape[0] * shape[1] * shape[2] - warp * LANES;
    r->warps.items[r->warps.n] = (recorded_warp){
        block, warp, left >= LANES ? (uint32_t)FULL : (1u << left) - 1, w->recorded};
    return w->id = (uint32_t)r->warps.n++;
}

uint32_t recorder_writer(recorder *r, uint32_t writer) {
    if (writer == NONE) return NONE;
    return recorder_warp(r, writer / MAX_WARPS, writer % MAX_WARPS);
}

uint32_t recorder_local(recorder *r, uint32_t member, uint32_t warp) {
    live_warp *w = &r->members.items[member].warps[warp];
    if (w->local != NONE) return w->local;
    const uint32_t id = recorder_warp(r, member, warp);
    return id == NONE ? NONE : (w->local = add_memory(r, MEMORY_LOCAL, id, 0));
}

/* ---- blocks that run ---- */

static bool is_chosen(const recorder *r, uint64_t number) {
    const uint64_t *blocks = r->out->blocks;
    size_t low = 0, high = r->out->n_blocks;
    if (!blocks) return true;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (blocks[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->out->n_blocks && blocks[low] == number;
}

static bool is_recorded_warp(const recorder *r, uint32_t warp) {
    bool found = !r->out->warps;
    for (size_t k = 0; k < r->out->n_warps && !found; k++)
        found = r->out->warps[k] == warp;
    return found;
}

/* Arrays by word of shared memory, all NONE but `value`, which is as block_begin sets it. */
static bool make_shadow(recorder *r, live_block *b) {
    const uint32_t n = (uint32_t)((r->launch->shared_region_bytes + 3) / 4);
    uint32_t **const arrays[] = {&b->value,       &b->writer,    &b->writer_instruction,
                                 &b->copy_writer, &b->copy_step, &b->copy_instruction};
    b->n_words = n;
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) {
        *arrays[k] = malloc(n * sizeof **arrays[k] + 1);
        if (!*arrays[k]) return false;
        memset(*arrays[k], 0xff, n * sizeof **arrays[k]);
    }
    for (uint32_t k = 0; k < n; k++)
        b->value[k] = (uint32_t)POISON << 16 | POISON;
    b->writer_lane = calloc(n + 1, 1);
    b->copy_lane = calloc(n + 1, 1);
    return b->writer_lane && b->copy_lane;
}

bool live_block_begin(recorder *r, live_block *b, const uint32_t index[3]) {
    enum { SHADOW_BYTES_PER_WORD = 6 * 4 + 2 };
    const size_t bytes = (size_t)r->launch->shared_region_bytes / 4 * SHADOW_BYTES_PER_WORD;
    *b = (live_block){.live = true, .id = NONE};
    memcpy(b->index, index, sizeof b->index);
    for (uint32_t k = 0; k < MAX_WARPS; k++)
        b->warps[k] = (live_warp){.id = NONE, .local = NONE, .recorded = is_recorded_warp(r, k)};
    const bool chosen = is_chosen(r, number_of(r, index)), ended = r->phase == AFTER_WINDOW;
    const bool fits = r->live_bytes + bytes <= r->out->max_bytes / 4;
    b->recorded = chosen && fits; /* also after the window: steps have the same numbers always */
    r->n_omitted += chosen && !b->recorded;
    if (!b->recorded) return true;
    b->bytes = bytes;
    r->live_bytes += bytes;
    return ended || make_shadow(r, b);
}

void live_block_end(recorder *r, live_block *b) {
    for (uint32_t k = 0; k < MAX_WARPS; k++)
        shadow_frames_free(b->warps[k].frames);
    free(b->value);
    free(b->writer);
    free(b->writer_instruction);
    free(b->writer_lane);
    free(b->copy_writer);
    free(b->copy_step);
    free(b->copy_instruction);
    free(b->copy_lane);
    r->live_bytes -= b->bytes;
    *b = (live_block){0};
}
