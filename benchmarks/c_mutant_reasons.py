"""Why no test can kill a mutant of c_mutants.py: a reason for each file, line and change.

Looked up by the file and by what the line was and became, not by its number.
"""

from __future__ import annotations

from typing import Any

REASONS: dict[tuple[str, str, str], str] = {
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
        "csrc/emu/counts.c",
        "enum { SOURCE = 1 << 2, LINE = 128 };",
        "enum { SOURCE = 1 << 3, LINE = 128 };",
    ): "any number without the lowest bit keeps these kinds apart from those of kind_of",
    (
        "csrc/core/plan_flow_sizes.c",
        "if (code) return code;",
        ";",
    ): "a plan that fails here fails again as the flow's steps are made, with the same message",
    (
        "csrc/module/operand.c",
        "*(reach < 0 ? low : &high) += reach;",
        "*(reach <= 0 ? low : &high) += reach;",
    ): "it adds 0 to the one or to the other",
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
        "csrc/emu/hazards_findings.c",
        "if (a->party.thread != b->party.thread) return a->party.thread < b->party.thread;",
        "if (a->party.thread != b->party.thread) return a->party.thread <= b->party.thread;",
    ): "the threads differ here, so `<` and `<=` say the same",
    (
        "csrc/emu/block.c",
        "if (bytes <= MAX_BLOCK_BYTES - b->charged) {",
        "if (bytes < MAX_BLOCK_BYTES - b->charged) {",
    ): "a block that takes 1 GiB to the byte is refused, and none that takes more is not",
    (
        "csrc/module/result_memory.c",
        "pthread_mutex_lock(&mutex);",
        "(void)0;",
    ): "a race of a few instructions: ThreadSanitizer reports it (`sanitized.py thread`), no test",
}


def reason_of(record: dict[str, Any]) -> str | None:
    return REASONS.get((record["file"], record["before"], record["after"]))
