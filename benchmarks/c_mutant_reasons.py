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
