/* Calls.
 *
 * Arguments and results are passed through local memory. The caller stores arguments to .param
 * variables of the call site, the call copies them to the callee's parameters, and a hidden
 * instruction after the call copies the results back.
 *
 * A call acquires a frame for the callee and runs it as a child split of the caller's split. So
 * lanes that return at different times reconverge after the call, and lanes may call different
 * functions through a pointer.
 */
#include <stdio.h>
#include <string.h>

#include "block.h"
#include "provided.h"
#include "control.h"
#include "decode.h"
#include "device_runtime.h"
#include "heap.h"

/* An argument or result on the caller's side. */
typedef struct passed_value {
    /* PASSED_NOTHING: `_`. PASSED_SLOT: a register or constant. PASSED_VECTOR: several of them.
     * PASSED_LOCAL: a .param variable. */
    enum { PASSED_NOTHING, PASSED_SLOT, PASSED_VECTOR, PASSED_LOCAL } by;
    uint64_t at;                      /* frame offset, or offset in the caller's local memory */
    uint32_t bytes;                   /* of the parameter */
    uint32_t slot_bytes;              /* per lane of the frame slot: 2 for an 8-bit register */
    const struct passed_value *items; /* of a vector: its components, in slots */
    uint32_t n_items;
} passed_value;

typedef struct call_site {
    const program *callee; /* NULL: a call through a pointer, in slot a */
    /* The callee, or the prototype that .callprototype or .calltargets names. */
    const ptx_function *signature;
    const passed_value *arguments, *results;
} call_site;

/* ---- copying in local memory ----
 *
 * A parameter of bytes may have any alignment, so it can extend over two chunks of local memory,
 * which are not adjacent: between them are the chunks of the other lanes. */

static void local_get(const local_memory *local, int lane, unsigned char *to, uint64_t from,
                      uint64_t bytes) {
    for (uint64_t n; bytes; to += n, from += n, bytes -= n) {
        n = local_run(from, bytes);
        memcpy(to, local_at(local, lane, from), (size_t)n);
    }
}

static void local_put(local_memory *local, int lane, uint64_t to, const unsigned char *from,
                      uint64_t bytes) {
    for (uint64_t n; bytes; to += n, from += n, bytes -= n) {
        n = local_run(to, bytes);
        memcpy(local_at(local, lane, to), from, (size_t)n);
    }
}

static void local_copy(local_memory *local, int lane, uint64_t to, uint64_t from, uint64_t bytes) {
    for (uint64_t n; bytes; to += n, from += n, bytes -= n) {
        n = local_run(from, local_run(to, bytes));
        memcpy(local_at(local, lane, to), local_at(local, lane, from), (size_t)n);
    }
}

static unsigned char *slot_at(const warp *w, const passed_value *p, int lane) {
    return w->frame + p->at + (size_t)lane * p->slot_bytes;
}

static void pass_argument(warp *w, uint32_t lanes, const passed_value *p, uint64_t caller_base,
                          uint64_t to) {
    for (uint32_t k = 0; k < p->n_items; k++)
        pass_argument(w, lanes, &p->items[k], caller_base, to + (uint64_t)k * p->items[k].bytes);
    for (; lanes && !p->n_items; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        if (p->by == PASSED_SLOT)
            local_put(w->local, lane, to, slot_at(w, p, lane), p->bytes);
        else
            local_copy(w->local, lane, to, caller_base + p->at, p->bytes);
    }
}

static void take_result(warp *w, uint32_t lanes, const passed_value *p, uint64_t caller_base,
                        uint64_t from) {
    for (uint32_t k = 0; k < p->n_items; k++)
        take_result(w, lanes, &p->items[k], caller_base, from + (uint64_t)k * p->items[k].bytes);
    for (; lanes && !p->n_items; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        if (p->by == PASSED_SLOT) {
            memset(slot_at(w, p, lane), 0, p->slot_bytes);
            local_get(w->local, lane, slot_at(w, p, lane), from, p->bytes);
        } else if (p->by == PASSED_LOCAL) {
            local_copy(w->local, lane, caller_base + p->at, from, p->bytes);
        }
    }
}

/* Hidden, after a call: copies the results from the start of the callee's local memory, which
 * follows the caller's. */
static const insn *exec_results(warp *w, const insn *i) {
    const call_site *site = i->extra;
    const frame *caller = w->split->frame;
    const uint64_t from = caller->local_base + caller->program->local_bytes;
    for (uint32_t k = 0; k < site->signature->n_returns; k++)
        take_result(w, w->active, &site->results[k], caller->local_base,
                    from + site->signature->returns[k]->offset);
    return i + 1;
}

/* ---- calls ---- */

static bool same_layout(ptx_variable *const *a, uint32_t n_a, ptx_variable *const *b,
                        uint32_t n_b) {
    bool same = n_a == n_b;
    for (uint32_t k = 0; same && k < n_a; k++)
        same = a[k]->size == b[k]->size && a[k]->offset == b[k]->offset;
    return same;
}

/* Whether a call compiled for signature a can call b: sizes and offsets of parameters and results
 * are equal. */
static bool is_callable_as(const ptx_function *a, const ptx_function *b) {
    return a == b || (same_layout(a->parameters, a->n_parameters, b->parameters, b->n_parameters) &&
                      same_layout(a->returns, a->n_returns, b->returns, b->n_returns));
}

/* Makes the callee a child of the running split, and copies the arguments. False: warp_fault has
 * been called, or the launch stopped. */
static bool enter_function(warp *w, const insn *i, uint32_t lanes, const program *callee) {
    const call_site *site = i->extra;
    const frame *caller = w->split->frame;
    const ptx_function *f = callee->function;
    const uint64_t base = caller->local_base + caller->program->local_bytes;
    if (!block_goes_on(w->block)) return false;
    if (caller->depth + 1 > MAX_CALL_DEPTH || base + callee->local_bytes > MAX_LOCAL_BYTES) {
        warp_fault(w, i, SMK_LAUNCH, lanes,
                   "stack overflow: call of %s at depth %u with %llu bytes of stack in use; the "
                   "emulator allows %d calls and %d bytes per thread",
                   f->name, caller->depth, (unsigned long long)base, MAX_CALL_DEPTH,
                   MAX_LOCAL_BYTES);
        return false;
    }
    frame *frame = NULL;
    if (local_reserve(w, base + callee->local_bytes))
        frame = frame_acquire(w, callee, base, caller->depth + 1);
    if (!frame || !split_push_call(w, lanes, frame)) {
        if (frame) frame_release(w->block, frame);
        warp_fault(w, i, SMK_MEMORY, lanes, "out of memory: a frame of %s", f->name);
        return false;
    }
    for (uint32_t k = 0; k < f->n_parameters; k++)
        pass_argument(w, lanes, &site->arguments[k], caller->local_base,
                      base + callee->parameters_at + f->parameters[k]->offset);
    return true;
}

static const insn *exec_call(warp *w, const insn *i) {
    const call_site *site = i->extra;
    w->split->next = i + 1;
    w->split->children = 0;
    return enter_function(w, i, w->active, site->callee) ? split_switch(w) : NULL;
}

/* The function at an address; NULL after a fault. */
static const program *resolve_callee(warp *w, const insn *i, uint32_t lanes, uint64_t address) {
    const call_site *site = i->extra;
    const launch *l = w->block->launch;
    const ptx_function *f = function_at(l->module->ptx, address);
    if (!f || f->is_entry || f->is_declaration) {
        warp_fault(w, i, SMK_LAUNCH, lanes,
                   "call of 0x%llx, which is not the address of a device function",
                   (unsigned long long)address);
        return NULL;
    }
    if (!is_callable_as(f, site->signature)) {
        warp_fault(w, i, SMK_LAUNCH, lanes,
                   "call of %s through a pointer: number, sizes or alignments of its parameters or "
                   "results differ from those of %s, which the call names",
                   f->name, site->signature->name);
        return NULL;
    }
    smk_status status = {0};
    interrupt_poller poller = launch_poller(l);
    const program *callee = program_get(l->module, f, w->block->observer != NULL, &poller, &status);
    if (!callee) warp_fault(w, i, status.code, lanes, "%s", status.message);
    return callee;
}

/* A call through a pointer: one child split per function that lanes call. */
static const insn *exec_call_pointer(warp *w, const insn *i) {
    const uint64_t *address = U64(w, i->a);
    w->split->next = i + 1;
    w->split->children = 0;
    for (uint32_t rest = w->active; rest;) {
        const uint64_t chosen = address[first_lane(rest)];
        uint32_t lanes = 0;
        for (uint32_t left = rest; left; left &= left - 1)
            if (address[first_lane(left)] == chosen) lanes |= left & -left;
        const program *callee = resolve_callee(w, i, lanes, chosen);
        if (!callee || !enter_function(w, i, lanes, callee)) return NULL;
        rest &= ~lanes;
    }
    return split_switch(w);
}

/* ---- functions that the CUDA driver provides ---- */

static void read_string(warp *w, const insn *i, int lane, uint64_t address, char *out,
                        size_t size) {
    size_t n = 0;
    for (; n + 1 < size; n++) {
        const unsigned char *c = lane_reach(w, i, PTX_GENERIC, lane, address + n, 1, false);
        if (!c || !*c) break;
        out[n] = (char)*c;
    }
    out[n] = 0;
}

void provided_read(const warp *w, const insn *i, int lane, uint32_t k, void *out, size_t bytes) {
    const call_site *site = i->extra;
    const passed_value *p = &site->arguments[k];
    if (p->by == PASSED_SLOT)
        memcpy(out, slot_at(w, p, lane), bytes);
    else
        local_get(w->local, lane, out, w->split->frame->local_base + p->at, bytes);
}

uint64_t provided_argument(const warp *w, const insn *i, int lane, uint32_t k) {
    const call_site *site = i->extra;
    uint64_t value = 0;
    provided_read(w, i, lane, k, &value, site->arguments[k].bytes);
    return value;
}

/* The results of a call are behind the caller's local memory: where exec_results finds them. */
static uint64_t results_at(const warp *w) {
    const frame *caller = w->split->frame;
    return caller->local_base + caller->program->local_bytes;
}

bool provided_reserve_result(warp *w, const insn *i) {
    const call_site *site = i->extra;
    if (local_reserve(w, results_at(w) + sizeof(uint64_t))) return true;
    warp_fault(w, i, SMK_MEMORY, w->active, "out of memory: a call of %s",
               site->callee->function->name);
    return false;
}

void provided_return(warp *w, int lane, const void *result, size_t bytes) {
    memcpy(local_at(w->local, lane, results_at(w)), result, bytes);
}

/* __assertfail(message, file, line, function, size of a character) */
static const insn *exec_assertion(warp *w, const insn *i) {
    const int lane = first_lane(w->active);
    char message[300], file[300];
    read_string(w, i, lane, provided_argument(w, i, lane, 0), message, sizeof message);
    read_string(w, i, lane, provided_argument(w, i, lane, 1), file, sizeof file);
    return warp_fault(w, i, SMK_LAUNCH, w->active, "assertion `%s` failed at %s:%u", message, file,
                      (unsigned)provided_argument(w, i, lane, 2));
}

/* vprintf(format, arguments), one lane after the other. */
static const insn *exec_print(warp *w, const insn *i) {
    int32_t result;
    if (!provided_reserve_result(w, i)) return NULL;
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        if (!print_lane(w, i, lane, provided_argument(w, i, lane, 0),
                        provided_argument(w, i, lane, 1), &result))
            return NULL;
        provided_return(w, lane, &result, sizeof result);
    }
    return i + 1;
}

/* malloc(bytes), one lane after the other. NULL where the heap has no room. */
static const insn *exec_malloc(warp *w, const insn *i) {
    heap *h = w->block->launch->module->heap;
    if (!provided_reserve_result(w, i)) return NULL;
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        uint64_t address = 0, offset;
        if (heap_allocate(h, provided_argument(w, i, lane, 0), &offset))
            address = REGION_BASE(REGION_HEAP) + offset;
        provided_return(w, lane, &address, sizeof address);
    }
    return i + 1;
}

static const insn *exec_free(warp *w, const insn *i) {
    heap *h = w->block->launch->module->heap;
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const uint64_t address = provided_argument(w, i, lane, 0);
        if (!address) continue;
        const char *wrong = h && REGION_OF(address) == REGION_HEAP
                                ? heap_release(h, REGION_OFFSET(address))
                                : "malloc did not return that address";
        if (wrong)
            return warp_fault(w, i, SMK_LAUNCH, 1u << lane, "free of 0x%llx: %s",
                              (unsigned long long)address, wrong);
    }
    return i + 1;
}

static const insn *exec_external(warp *w, const insn *i) {
    const call_site *site = i->extra;
    return warp_fault(w, i, SMK_UNSUPPORTED, w->active,
                      "call of %s, which has no body in this PTX; join the PTX of the file that "
                      "defines it to this text",
                      site->callee->function->name);
}

/* ---- decoding ---- */

static bool has_sizes(ptx_variable *const *variables, uint32_t n, const char *sizes) {
    bool same = n == strlen(sizes);
    for (uint32_t k = 0; same && k < n; k++)
        same = !variables[k]->vector &&
               variables[k]->size == (sizes[k] == 'd' ? 12 : (uint64_t)(sizes[k] - '0'));
    return same;
}

/* The handler for a function without a body. The handlers expect the arguments of the driver's
 * function, so its declaration must match. */
static exec_fn select_provided(decoder *dc, const ptx_function *f) {
    static const provided_function own[] = {{"__assertfail", "88488", "", exec_assertion},
                                            {"vprintf", "88", "4", exec_print},
                                            {"malloc", "8", "8", exec_malloc},
                                            {"free", "8", "", exec_free},
                                            {0}};
    const provided_function *p = own;
    while (p->name && strcmp(f->name, p->name))
        p++;
    if (!p->name) p = device_runtime_find(f->name);
    if (!p) return exec_external;
    if (!p->name) return p->handler;
    if (has_sizes(f->parameters, f->n_parameters, p->parameters) &&
        has_sizes(f->returns, f->n_returns, p->results))
        return p->handler;
    return decode_invalid(dc,
                          "%s is declared with other parameters or results than the driver's "
                          "function",
                          f->name);
}

/* A scalar, or a component of a vector, that is passed in a register or as an immediate. False: it
 * does not match `formal`. */
static bool decode_scalar(decoder *dc, const ptx_operand *o, const ptx_variable *formal,
                          bool result, passed_value *out) {
    const uint32_t bytes = ptx_type_size[formal->type];
    const ptx_type declared = decode_register_type(dc, o);
    const bool is_immediate = o->kind == PTX_IMMEDIATE;
    if (!is_immediate && (o->kind != PTX_REGISTER || declared == PTX_PRED || o->negated ||
                          ptx_type_size[declared] != bytes))
        return false;
    const ptx_type type = is_immediate ? formal->type : declared;
    *out =
        (passed_value){.by = PASSED_SLOT,
                       .bytes = bytes,
                       .slot_bytes = ptx_slot_bytes(type) / LANES,
                       .at = result ? decode_destination(dc, o, type) : decode_source(dc, o, type)};
    return true;
}

/* A vector in registers. */
static bool decode_vector(decoder *dc, const ptx_operand *o, const ptx_variable *formal,
                          bool result, passed_value *out) {
    const uint32_t n = o->n_items;
    passed_value *items = decode_alloc(dc, n * sizeof *items);
    if (!items || n != formal->vector || formal->size != (uint64_t)n * ptx_type_size[formal->type])
        return false;
    for (uint32_t k = 0; k < n; k++) {
        if (result && o->items[k].kind == PTX_IMMEDIATE) return false;
        if (!decode_scalar(dc, &o->items[k], formal, result, &items[k])) return false;
    }
    *out = (passed_value){.by = PASSED_VECTOR, .items = items, .n_items = n};
    return true;
}

/* One argument or result. False: it does not match `formal`, the function's parameter or result. */
static bool decode_passed_value(decoder *dc, const ptx_operand *o, const ptx_variable *formal,
                                bool result, passed_value *out) {
    const ptx_variable *v = o->variable;
    if (o->kind == PTX_SINK && result) {
        *out = (passed_value){.by = PASSED_NOTHING};
        return true;
    }
    if (o->kind == PTX_VECTOR) return decode_vector(dc, o, formal, result, out);
    if (o->kind == PTX_REGISTER || (o->kind == PTX_IMMEDIATE && !result))
        return formal->size == ptx_type_size[formal->type] &&
               decode_scalar(dc, o, formal, result, out);
    if (o->kind != PTX_SYMBOL || !v || v->space != PTX_PARAM || o->offset ||
        v->size != formal->size || v->align != formal->align)
        return false;
    *out = (passed_value){.by = PASSED_LOCAL, .bytes = (uint32_t)formal->size};
    return decode_in_local(dc, v, &out->at);
}

static bool decode_list(decoder *dc, const ptx_operand *list, ptx_variable *const *formals,
                        uint32_t n, bool result, const char *name, const passed_value **out) {
    const char *what = result ? "result" : "argument";
    if (list->n_items != n) {
        decode_invalid(dc, "the call of %.100s has %u %ss, expected %u", name, list->n_items, what,
                       n);
        return false;
    }
    passed_value *p = decode_alloc(dc, (n + 1) * sizeof *p);
    if (!p) return false;
    for (uint32_t k = 0; k < n; k++) {
        if (decode_passed_value(dc, &list->items[k], formals[k], result, &p[k])) continue;
        decode_invalid(
            dc,
            "%s %u of the call does not match that of %.100s: expected %llu bytes aligned "
            "to %u",
            what, k + 1, name, (unsigned long long)formals[k]->size, formals[k]->align);
        return false;
    }
    *out = p;
    return true;
}

/* The operand after the arguments of a call through a register: its signature. */
static const ptx_function *decode_prototype(const ptx_operand *o) {
    if (o->kind == PTX_TARGETS) o = o->targets->items;
    return o->kind == PTX_SYMBOL ? o->function : NULL;
}

static exec_fn select_call(decoder *dc, const ptx_instruction *p, insn *out) {
    static const ptx_operand none = {.kind = PTX_VECTOR};
    const ptx_operand *o = p->operands, *end = o + p->n_operands;
    const ptx_operand *results = &none, *arguments = &none;
    call_site *site = decode_alloc(dc, sizeof *site);
    decode_take(dc, "uni");
    decode_not_predicable(dc);
    out->extra = site;
    if (o < end && o->kind == PTX_VECTOR) results = o++;
    if (o == end) return NULL;
    const ptx_operand *target = o++;
    if (o < end && o->kind == PTX_VECTOR) arguments = o++;
    const bool by_pointer = target->kind == PTX_REGISTER;
    if (by_pointer && o < end)
        site->signature = decode_prototype(o++);
    else if (target->kind == PTX_SYMBOL)
        site->signature = target->function;
    const ptx_function *f = site->signature;
    if (!f || (!by_pointer && !f->number))
        return decode_invalid(dc, by_pointer
                                      ? "a call through a register must name its "
                                        ".callprototype or .calltargets"
                                      : "the target of a call must be a function or a register");
    if (o < end) return decode_invalid(dc, "a call has too many operands");
    if (f->is_entry)
        return decode_invalid(dc, "%.100s is a kernel; only device functions can be called",
                              f->name);
    if (!decode_list(dc, results, f->returns, f->n_returns, true, f->name, &site->results) ||
        !decode_list(dc, arguments, f->parameters, f->n_parameters, false, f->name,
                     &site->arguments))
        return NULL;
    if (f->n_returns) decode_emit_after(dc, (insn){.exec = exec_results, .extra = site});
    if (by_pointer) {
        out->a = decode_source(dc, target, PTX_U64);
        return exec_call_pointer;
    }
    site->callee = decode_callee(dc, f);
    return f->is_declaration ? select_provided(dc, f) : exec_call;
}

opcode_table call_opcodes = {
    [PTX_OP_call] = select_call,
};
