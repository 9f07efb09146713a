"""Why no test kills a mutant of c_mutants.py: one reason per mutant.

Keys are the file, the original line and the mutated line. Line numbers change, so they are no key.
"""

from __future__ import annotations

from typing import Any

Reasons = dict[tuple[str, str, str], str]

# These behave like the original for every input: they do not count.
EQUIVALENT: Reasons = {
    (
        "csrc/emu/mbarrier.c",
        "if (i->flags & ARRIVE_STATE) U64(w, i->d)[lane] = before;",
        "if (i->flags | ARRIVE_STATE) U64(w, i->d)[lane] = before;",
    ): "the sink register `_` has its own slot in the register file, which is never read",
    (
        "csrc/core/plan_flow_sizes.c",
        "if (code) return code;",
        ";",
    ): "a plan that fails here fails again when its tasks are created, with the same message",
    (
        "csrc/emu/hazards_order.c",
        "if (!fresh) return NULL;",
        ";",
    ): "reached only when out of memory; the trace fails with MemoryError then",
    (
        "csrc/module/scalar.c",
        "overflow == 0 && (bits >= 64 || (value >= -(1LL << (bits - 1)) && "
        "value < (1LL << bits)));",
        "overflow == 0 && (bits >= 63 || (value >= -(1LL << (bits - 1)) && "
        "value < (1LL << bits)));",
    ): "integers have 8, 16, 32 or 64 bits",
    (
        "csrc/core/plan_flow_sizes.c",
        "for (int edges = 0; edges < 4; edges++) {",
        "for (int edges = 0; edges < 5; edges++) {",
    ): "4 has neither of the two bits set, like 0, which was checked before",
    (
        "csrc/emu/alignment.c",
        "while (n < 4 && v->align >> (n + 1))",
        "while (!(n < 4 && v->align >> (n + 1)))",
    ): "merged loads are counted only in shared memory, where n is 4 in either case",
    (
        "csrc/emu/parser_constant.c",
        "char second = p->token.start + 1 < p->lexer.end ? p->token.start[1] : 0;",
        "char second = p->token.start + 0 < p->lexer.end ? p->token.start[1] : 0;",
    ): "the last byte of a text is followed by a NUL",
    (
        "csrc/emu/alu_convert.c",
        "if (to == PTX_NO_TYPE || from == PTX_NO_TYPE) return NULL;",
        "if (to == PTX_NO_TYPE && from == PTX_NO_TYPE) return NULL;",
    ): "an instruction with only one type is rejected by each of the later branches",
    (
        "csrc/emu/parser.c",
        "if (p->failed) return false;",
        ";",
    ): "a later error does not replace the first one, and parsing fails in either case",
    (
        "csrc/emu/matrix_exact.c",
        "for (uint32_t column = 0; column < n; column++) {",
        "for (uint32_t column = 0; column <= n; column++) {",
    ): "one extra sum is computed, within the bounds of the array, and never read",
    (
        "csrc/core/plan.c",
        "if (args.split > 1) { /* what a block holds may be as long as its part of K */",
        "if (args.split > 2) { /* what a block holds may be as long as its part of K */",
    ): "each of two parts is longer than a block holds at a time, or K is too short for two parts",
    (
        "csrc/module/device_array.c",
        "bool outside = low < 0, empty = false;",
        "bool outside = low <= 0, empty = false;",
    ): "address 0 was rejected before, with its own message",
    (
        "csrc/core/plan_flow_blocks.c",
        ": share < TRANSPOSE_MOST ? (int64_t)share",
        ": share <= TRANSPOSE_MOST ? (int64_t)share",
    ): "the result is the minimum of the two in either case",
    (
        "csrc/module/request.c",
        "if (r->plan.n_launches == 0) { return 0; }",
        ";",
    ): "a plan without launches then runs, which does nothing",
    (
        "csrc/emu/observe.c",
        "if (!next) return NULL;",
        ";",
    ): "the launch has failed by then, and the counts of its trace are discarded",
    (
        "csrc/module/device_request.c",
        "if (r->on.ordinal < 0) {",
        "if (r->on.ordinal <= 0) {",
    ): "for arrays on GPU 0 the named GPU is GPU 0: any other was rejected above",
    (
        "csrc/core/plan_wgmma.c",
        "const int64_t z = walk_z_size(w) < MAX_GRID_Z ? walk_z_size(w) : MAX_GRID_Z;",
        "const int64_t z = walk_z_size(w) < (MAX_GRID_Z + 1) ? walk_z_size(w) : MAX_GRID_Z;",
    ): "the result is the minimum of the two in either case",
    (
        "csrc/emu/alu_convert.c",
        "if (frequent) return frequent;",
        ";",
    ): "the general conversion gives the same bits, but is slower",
    (
        "csrc/emu/alu_half.c",
        "if (flags & FLAG_SAT) x = x > 0 ? x < 1 ? x : 1 : 0; /* NaN and -0 give +0 */",
        "if (flags & FLAG_SAT) x = x > 0 ? x <= 1 ? x : 1 : 0; /* NaN and -0 give +0 */",
    ): "if x is 1, both give 1",
    (
        "csrc/emu/counts.c",
        "enum { SOURCE = 1 << 2, LINE = 128 };",
        "enum { SOURCE = 1 << 3, LINE = 128 };",
    ): "any value with a clear lowest bit differs from the values of kind_of",
    (
        "csrc/module/operand.c",
        "*(reach < 0 ? low : &high) += reach;",
        "*(reach <= 0 ? low : &high) += reach;",
    ): "it adds 0 to one or the other",
    (
        "csrc/emu/hazards_findings.c",
        "if (a->party.thread != b->party.thread) return a->party.thread < b->party.thread;",
        "if (a->party.thread != b->party.thread) return a->party.thread <= b->party.thread;",
    ): "the threads differ here, so `<` and `<=` are equal",
}
# These behave differently, but only in cases that no test can produce, or no test checks.
REASONS: Reasons = {
    (
        "csrc/emu/liveness.c",
        "for (uint32_t k = 0; k < b->n_successors; k++) {",
        "for (uint32_t k = 0; k <= b->n_successors; k++) {",
    ): "the entry after the list is taken as a successor: more registers live, equal results",
    (
        "csrc/module/image.c",
        "Py_CLEAR(image);",
        "(void)0;",
    ): "reached only if a dict entry cannot be allocated, and the image is in use then",
    (
        "csrc/module/tables.c",
        "Py_CLEAR(list);",
        "(void)0;",
    ): "reached only if a row of the table cannot be allocated; the call fails in either case",
    (
        "csrc/core/plan_transpose.c",
        "enum { CROWDED = 128 << 10, APART = 16 << 10 };",
        "enum { CROWDED = 128 << 10, APART = 16 >> 10 };",
    ): "the order in which strips are read: it changes the speed on a GPU, but no result",
    (
        "csrc/emu/reconvergence.c",
        "arms[e] += a->only_leaves[to] ? a->exit_block[e] == block : a->exits[to] >> e & 1;",
        "arms[e] += a->only_leaves[to] ? a->exit_block[e] != block : a->exits[to] >> e & 1;",
    ): "moves the reconvergence point of lanes that exit: equal results, and no test counts it",
    (
        "csrc/module/image.c",
        'if (name && strncmp(name, prefix, strlen(prefix)) == 0 && ends_with(name, ".ptx")) {',
        'if (name && strncmp(name, prefix, strlen(prefix)) == 0 || ends_with(name, ".ptx")) {',
    ): "only for the message if NVRTC is missing; the test machine has NVRTC and cannot hide it",
    (
        "csrc/emu/emu.c",
        "memset(host, 0xff, b->bytes); /* a number that nobody wrote should be a NaN */",
        "(void)0; /* a number that nobody wrote should be a NaN */",
    ): "every variant writes its workspace before it reads it; the line exposes one that does not",
    (
        "csrc/emu/hazards_findings.c",
        "if (out->variable && !endless && offset - at > (uint64_t)out->variable_at) continue;",
        ";",
    ): "variables overlap only if kernels share memory: no test has such a hazard yet",
    (
        "csrc/emu/reconvergence.c",
        "if (latch != NONE && interrupt_look(a->poller)) return;",
        "if (latch != NONE || interrupt_look(a->poller)) return;",
    ): "only at reconvergence points of several endless loops, which lanes never leave",
    (
        "csrc/module/device.c",
        "for (size_t i = 0; i < flow->n_steps; i++) {",
        "for (size_t i = 0; i <= flow->n_steps; i++) {",
    ): "reads one extra step, within the allocation, where no step has been written",
    (
        "csrc/emu/hazards_order.c",
        "if (o->peers) memset(o->peers, 0, o->n_warps * sizeof *o->peers);",
        "if (o->peers) (void)0;",
    ): "reached only after 2^31 increments of the clock in one launch: hours of emulation",
    (
        "csrc/emu/reconvergence.c",
        "if (interrupt_look(a->poller)) return;",
        ";",
    ): "only delays the interruption of an analysis of millions of branches",
    (
        "csrc/module/device.c",
        "Py_XDECREF(w.tell);",
        "(void)0;",
    ): "reached only by a call that is rejected at interpreter exit; the process ends then",
    (
        "csrc/emu/block.c",
        "if (bytes <= MAX_BLOCK_BYTES - b->charged) {",
        "if (bytes < MAX_BLOCK_BYTES - b->charged) {",
    ): "rejects also a block of exactly 1 GiB; larger blocks are rejected in either case",
    (
        "csrc/module/result_memory.c",
        "pthread_mutex_lock(&mutex);",
        "(void)0;",
    ): "a race of a few instructions, for ThreadSanitizer to find (`sanitized.py thread`)",
}


def is_equivalent(record: dict[str, Any]) -> bool:
    return (record["file"], record["before"], record["after"]) in EQUIVALENT


def reason_of(record: dict[str, Any]) -> str | None:
    return (EQUIVALENT | REASONS).get((record["file"], record["before"], record["after"]))
