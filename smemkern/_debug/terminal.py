"""The debugger's input: lines from a terminal, from files and from pipes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .expressions import Wrong
from .session import Session
from .show import where, wrapped
from .table import Interpreter, Quit

PROMPT = "(smemkern) "
_HISTORY = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")


class Ran(NamedTuple):
    """One command, with what it printed."""

    command: str
    output: list[str]
    failed: bool
    step: int  # after it


class Debugger:
    """Runs commands and keeps what they printed."""

    def __init__(self, session: Session, show: Callable[[str], None] | None) -> None:
        self.session = session
        self.interpreter = Interpreter(session)
        self.show = show or (lambda _: None)
        self.ran: list[Ran] = []
        self.has_quit = False

    def greet(self, name: str) -> None:
        header = self.session.machine.header
        total, n = header["total"], sum(not one["benign"] for one in header["hazards"])
        hazards = "1 hazard" if n == 1 else f"{n or 'no'} hazards"
        steps = f"{total} step{'s' * (total != 1)}"
        if self.session.machine.end < total:
            steps += f", the first {self.session.machine.end} recorded so far"
        for line in wrapped(f"{name}: {steps}; {hazards}. Type help for commands."):
            self.show(line)
        if self.session.machine.count:
            for line in where(self.session, False):
                self.show(line)

    def run(self, command: str) -> bool:
        """Runs one line; False: it is wrong, or the session has ended."""
        failed = False
        try:
            output = self.interpreter.run(command)
        except Wrong as wrong:
            message = repr(str(wrong))[1:-1] if not str(wrong).isprintable() else str(wrong)
            output, failed = wrapped(f"{message[:1].upper()}{message[1:]}."), True
        except Quit:
            self.has_quit = True
            return False
        for line in output:
            self.show(line)
        self.ran.append(Ran(command, output, failed, self.session.step))
        return not failed

    def script(self, lines: Iterable[str], echo: bool = False) -> None:
        """Runs lines up to the first that is wrong, as gdb does with -x."""
        for line in lines:
            if echo:
                self.show(f"{PROMPT}{line}".rstrip())
            if not self.run(line):
                return

    def pipe(self, stream: Iterable[str]) -> None:
        """Runs all lines of a pipe, shown after the prompt."""
        for line in stream:
            self.show(f"{PROMPT}{line}".rstrip())
            self.run(line.rstrip("\n"))
            if self.has_quit:
                return

    def interact(self) -> None:
        """Reads lines from the terminal until quit or the end of the input."""
        read = reader(self.interpreter)
        while not self.has_quit:
            try:
                self.run(read())
            except EOFError:
                self.show("quit")
                return
            except KeyboardInterrupt:
                self.show("Quit")


def reader(interpreter: Interpreter) -> Callable[[], str]:
    """Reads one line, by prompt_toolkit where it is installed, else by readline."""
    try:
        from prompt_toolkit import PromptSession
    except ImportError:
        _use_readline(interpreter)
        return lambda: input(PROMPT)
    session: Any = PromptSession(history=_history(), completer=_completer(interpreter))
    return lambda: str(session.prompt(PROMPT, complete_while_typing=False))


def _history() -> Any:
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    try:
        folder = _HISTORY / "smemkern"
        folder.mkdir(parents=True, exist_ok=True)
        return FileHistory(str(folder / "debug_history"))
    except OSError:
        return InMemoryHistory()


def _completer(interpreter: Interpreter) -> Any:
    from prompt_toolkit.completion import Completer, Completion

    class OfCommands(Completer):
        def get_completions(self, document: Any, event: Any) -> Iterator[Completion]:
            text = document.text_before_cursor.lstrip()
            for name in interpreter.completions(text):
                yield Completion(name, -len(text.split(" ")[-1]))

    return OfCommands()


def _use_readline(interpreter: Interpreter) -> None:
    with contextlib.suppress(ImportError):
        import readline

        def complete(_: str, state: int) -> str | None:
            line = readline.get_line_buffer()[: readline.get_endidx()].lstrip()
            found = interpreter.completions(line)
            return found[state] if state < len(found) else None

        readline.set_completer_delims(" ")
        readline.set_completer(complete)
        readline.parse_and_bind("tab: complete")


def is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def debug(session: Session, name: str) -> None:
    """Reads commands from the terminal, in Python."""
    debugger = Debugger(session, print)
    debugger.greet(name)
    debugger.interact()
