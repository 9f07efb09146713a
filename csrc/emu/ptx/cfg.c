/* The control-flow graph: basic blocks and edges. */
#include "cfg.h"

#include <string.h>

bool ptx_branches(const ptx_instruction *in) {
    const ptx_control control = ptx_facts(in)->control;
    return control == CONTROL_BRANCH || control == CONTROL_BRANCH_TABLE;
}

bool ptx_leaves(const ptx_instruction *in) {
    const ptx_control control = ptx_facts(in)->control;
    return control != CONTROL_NEXT && control != CONTROL_CALL;
}

bool ptx_diverges(const ptx_instruction *in) {
    return ptx_branches(in) && (in->guarded || in->op == PTX_OP_brx);
}

/* The possible targets of a branch: the operand of bra, the list of brx.idx. */
static const ptx_operand *targets(const ptx_instruction *in, uint32_t *n) {
    *n = 0;
    if (!ptx_branches(in)) return NULL;
    for (uint32_t k = 0; k < in->n_operands; k++) {
        const ptx_operand *o = &in->operands[k];
        if (o->kind == PTX_LABEL) {
            *n = 1;
            return o;
        }
        if (o->kind == PTX_TARGETS) {
            *n = o->targets->n_items;
            return o->targets->items;
        }
    }
    return NULL;
}

uint64_t cfg_count_edges(const ptx_function *f) {
    uint64_t n = f->n_instructions;
    uint32_t n_targets;
    for (uint32_t i = 0; i < f->n_instructions; i++) {
        targets(&f->instructions[i], &n_targets);
        n += n_targets;
    }
    return n;
}

/* Sets the block number of each instruction; returns the number of blocks. */
static uint32_t find_blocks(const ptx_function *f, uint32_t *block_of) {
    uint32_t n_targets;
    /* A 1 marks the first instruction of a block. The last loop turns marks into block numbers. */
    block_of[0] = 1;
    for (uint32_t i = 0; i < f->n_instructions; i++) {
        const ptx_instruction *in = &f->instructions[i];
        const ptx_operand *to = targets(in, &n_targets);
        for (uint32_t k = 0; k < n_targets; k++)
            if (to[k].kind == PTX_LABEL) block_of[to[k].target] = 1;
        if (ptx_leaves(in) && i + 1 < f->n_instructions) block_of[i + 1] = 1;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_instructions; i++) {
        n += block_of[i];
        block_of[i] = n - 1;
    }
    return n;
}

bool cfg_build(ptx_arena *arena, const ptx_function *f, cfg *out) {
    uint32_t *block_of = arena_alloc(arena, f->n_instructions, sizeof *block_of);
    if (!block_of) return false;
    uint32_t n = find_blocks(f, block_of), n_targets;
    cfg_block *blocks = arena_alloc(arena, n, sizeof *blocks);
    if (!blocks) return false;
    for (uint32_t i = 0; i < f->n_instructions; i++) {
        if (i == 0 || block_of[i] != block_of[i - 1]) blocks[block_of[i]].first = i;
        blocks[block_of[i]].last = i;
    }

    size_t n_edges = n;
    for (uint32_t b = 0; b < n; b++) {
        targets(&f->instructions[blocks[b].last], &n_targets);
        n_edges += n_targets;
    }
    uint32_t *edges = arena_alloc(arena, n_edges, sizeof *edges);
    uint32_t *back = arena_alloc(arena, n_edges, sizeof *back);
    if (!edges || !back) return false;
    for (uint32_t b = 0; b < n; b++) {
        const ptx_instruction *last = &f->instructions[blocks[b].last];
        const ptx_operand *to = targets(last, &n_targets);
        uint32_t *begin = edges;
        if (b + 1 < n && (last->guarded || !ptx_leaves(last))) *edges++ = b + 1;
        for (uint32_t k = 0; k < n_targets; k++)
            if (to[k].kind == PTX_LABEL) *edges++ = block_of[to[k].target];
        blocks[b].successors = begin;
        blocks[b].n_successors = (uint32_t)(edges - begin);
        for (uint32_t *e = begin; e < edges; e++)
            blocks[*e].n_predecessors++;
    }
    uint32_t **fill = arena_alloc(arena, n, sizeof *fill);
    if (!fill) return false;
    for (uint32_t b = 0; b < n; b++) {
        blocks[b].predecessors = fill[b] = back;
        back += blocks[b].n_predecessors;
    }
    for (uint32_t b = 0; b < n; b++)
        for (uint32_t k = 0; k < blocks[b].n_successors; k++)
            *fill[blocks[b].successors[k]]++ = b;
    *out = (cfg){.blocks = blocks, .n_blocks = n};
    return true;
}
