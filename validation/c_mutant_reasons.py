"""Why no test kills a mutant of c_mutants.py: a reason for each file, line and change.

Looked up by the file and by what the line was and became, not by its number.
"""

from __future__ import annotations

from typing import Any

Reasons = dict[tuple[str, str, str], str]

# No input tells these from the original: they do not count.
EQUIVALENT: Reasons = {
    (
        "csrc/emu/mbarrier.c",
        "if (i->flags & ARRIVE_STATE) U64(w, i->d)[lane] = before;",
        "if (i->flags | ARRIVE_STATE) U64(w, i->d)[lane] = before;",
    ): "`_` has a place of its own among the registers, which nobody reads",
    (
        "csrc/core/plan_flow_sizes.c",
        "if (code) return code;",
        ";",
    ): "a plan that fails here fails again as the flow's steps are made, with the same message",
    (
        "csrc/emu/hazards_order.c",
        "if (!fresh) return NULL;",
        ";",
    ): "only without memory comes here, and the trace is a MemoryError by then",
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
    ): "4 has neither of the two bits, as 0, which has been looked at",
    (
        "csrc/emu/alignment.c",
        "while (n < 4 && v->align >> (n + 1))",
        "while (!(n < 4 && v->align >> (n + 1)))",
    ): "joined loads are counted in shared memory alone, where n is 4 in any case",
    (
        "csrc/emu/parser_constant.c",
        "char second = p->token.start + 1 < p->lexer.end ? p->token.start[1] : 0;",
        "char second = p->token.start + 0 < p->lexer.end ? p->token.start[1] : 0;",
    ): "behind the last byte of a text stands a NUL",
    (
        "csrc/emu/alu_convert.c",
        "if (to == PTX_NO_TYPE || from == PTX_NO_TYPE) return NULL;",
        "if (to == PTX_NO_TYPE && from == PTX_NO_TYPE) return NULL;",
    ): "what has one type only is refused by each of the ways that come after it",
    (
        "csrc/emu/parser.c",
        "if (p->failed) return false;",
        ";",
    ): "an error is not replaced by a later one, and the reading fails all the same",
    (
        "csrc/emu/matrix_exact.c",
        "for (uint32_t column = 0; column < n; column++) {",
        "for (uint32_t column = 0; column <= n; column++) {",
    ): "a sum too many is made, in a place that the array has, and never read",
    (
        "csrc/core/plan.c",
        "if (args.split > 1) { /* what a block holds may be as long as its part of K */",
        "if (args.split > 2) { /* what a block holds may be as long as its part of K */",
    ): "of two parts each is longer than what a block holds at a time, or K is too short for two",
    (
        "csrc/module/device_array.c",
        "bool outside = low < 0, empty = false;",
        "bool outside = low <= 0, empty = false;",
    ): "address 0 has been refused before, with its own words",
    (
        "csrc/core/plan_flow_blocks.c",
        ": share < TRANSPOSE_MOST ? (int64_t)share",
        ": share <= TRANSPOSE_MOST ? (int64_t)share",
    ): "the lesser of two, either way",
    (
        "csrc/module/request.c",
        "if (r->plan.n_launches == 0) { return 0; }",
        ";",
    ): "a plan of no launches is run then, which does nothing",
    (
        "csrc/emu/observe.c",
        "if (!next) return NULL;",
        ";",
    ): "the launch has failed by then, and what its trace counted is thrown away",
    (
        "csrc/module/device_request.c",
        "if (r->on.ordinal < 0) {",
        "if (r->on.ordinal <= 0) {",
    ): "a GPU that is named beside arrays on GPU 0 is GPU 0: any other has been refused above",
    (
        "csrc/core/plan_wgmma.c",
        "const int64_t z = walk_z_size(w) < MAX_GRID_Z ? walk_z_size(w) : MAX_GRID_Z;",
        "const int64_t z = walk_z_size(w) < (MAX_GRID_Z + 1) ? walk_z_size(w) : MAX_GRID_Z;",
    ): "the lesser of two, either way",
    (
        "csrc/emu/alu_convert.c",
        "if (frequent) return frequent;",
        ";",
    ): "the general conversion gives the same bits, and takes longer",
    (
        "csrc/emu/alu_half.c",
        "if (flags & FLAG_SAT) x = x > 0 ? x < 1 ? x : 1 : 0; /* NaN and -0 give +0 */",
        "if (flags & FLAG_SAT) x = x > 0 ? x <= 1 ? x : 1 : 0; /* NaN and -0 give +0 */",
    ): "where x is 1, both give 1",
    (
        "csrc/emu/counts.c",
        "enum { SOURCE = 1 << 2, LINE = 128 };",
        "enum { SOURCE = 1 << 3, LINE = 128 };",
    ): "any number without the lowest bit keeps these kinds apart from those of kind_of",
    (
        "csrc/module/operand.c",
        "*(reach < 0 ? low : &high) += reach;",
        "*(reach <= 0 ? low : &high) += reach;",
    ): "it adds 0 to the one or to the other",
    (
        "csrc/emu/hazards_findings.c",
        "if (a->party.thread != b->party.thread) return a->party.thread < b->party.thread;",
        "if (a->party.thread != b->party.thread) return a->party.thread <= b->party.thread;",
    ): "the threads differ here, so `<` and `<=` say the same",
}
# These could be told, by what a test cannot bring about.
REASONS: Reasons = {
    (
        "csrc/emu/liveness.c",
        "for (uint32_t k = 0; k < b->n_successors; k++) {",
        "for (uint32_t k = 0; k <= b->n_successors; k++) {",
    ): "what stands behind the list is taken for a successor: more registers live, no other result",
    (
        "csrc/module/image.c",
        "Py_CLEAR(image);",
        "(void)0;",
    ): "only without memory for an entry of a dict comes here, and the image is in use",
    (
        "csrc/module/tables.c",
        "Py_CLEAR(list);",
        "(void)0;",
    ): "only without memory for a row of the table comes here, and the call fails all the same",
    (
        "csrc/core/plan_transpose.c",
        "enum { CROWDED = 128 << 10, APART = 16 << 10 };",
        "enum { CROWDED = 128 << 10, APART = 16 >> 10 };",
    ): "the order in which strips are read: how fast a GPU is, and no result",
    (
        "csrc/emu/reconvergence.c",
        "arms[e] += a->only_leaves[to] ? a->exit_block[e] == block : a->exits[to] >> e & 1;",
        "arms[e] += a->only_leaves[to] ? a->exit_block[e] != block : a->exits[to] >> e & 1;",
    ): "only where lanes meet that leave: results stay, and no test counts steps there",
    (
        "csrc/module/image.c",
        'if (name && strncmp(name, prefix, strlen(prefix)) == 0 && ends_with(name, ".ptx")) {',
        'if (name && strncmp(name, prefix, strlen(prefix)) == 0 || ends_with(name, ".ptx")) {',
    ): "a message that is made where there is no NVRTC, which this machine has and cannot hide",
    (
        "csrc/emu/emu.c",
        "memset(host, 0xff, b->bytes); /* a number that nobody wrote should be a NaN */",
        "(void)0; /* a number that nobody wrote should be a NaN */",
    ): "every row writes its workspace before it reads it: this is for one that does not",
    (
        "csrc/emu/hazards_findings.c",
        "if (out->variable && !endless && offset - at > (uint64_t)out->variable_at) continue;",
        ";",
    ): "variables overlap only where kernels share memory: no test has such a hazard yet",
    (
        "csrc/emu/reconvergence.c",
        "if (latch != NONE && interrupt_look(a->poller)) return;",
        "if (latch != NONE || interrupt_look(a->poller)) return;",
    ): "only where lanes of several endless loops meet; they never leave these",
    (
        "csrc/module/device.c",
        "for (size_t i = 0; i < flow->n_steps; i++) {",
        "for (size_t i = 0; i <= flow->n_steps; i++) {",
    ): "one step more is read where there is room for one, and none has been written there",
    (
        "csrc/emu/hazards_order.c",
        "if (o->peers) memset(o->peers, 0, o->n_warps * sizeof *o->peers);",
        "if (o->peers) (void)0;",
    ): "only after 2^31 steps of order in one launch; hours of emulation",
    (
        "csrc/emu/reconvergence.c",
        "if (interrupt_look(a->poller)) return;",
        ";",
    ): "only how soon the reading of millions of branches ends; the next look is not far",
    (
        "csrc/module/device.c",
        "Py_XDECREF(w.tell);",
        "(void)0;",
    ): "only a call that is refused as the interpreter ends comes here: what it keeps goes with it",
    (
        "csrc/emu/block.c",
        "if (bytes <= MAX_BLOCK_BYTES - b->charged) {",
        "if (bytes < MAX_BLOCK_BYTES - b->charged) {",
    ): "a block that takes 1 GiB to the byte is refused, and none that takes more is not",
    (
        "csrc/module/result_memory.c",
        "pthread_mutex_lock(&mutex);",
        "(void)0;",
    ): "a race of a few instructions: a matter for ThreadSanitizer (`sanitized.py thread`)",
}


def is_equivalent(record: dict[str, Any]) -> bool:
    return (record["file"], record["before"], record["after"]) in EQUIVALENT


def reason_of(record: dict[str, Any]) -> str | None:
    return (EQUIVALENT | REASONS).get((record["file"], record["before"], record["after"]))
