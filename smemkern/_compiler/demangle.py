"""Names of C++ functions as one would write them, from the mangled names of the Itanium ABI.

Names come from PTX that anyone may have written. So there are limits, and a name that breaks the
rules stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

_DEEPEST = 60
_LONGEST = 4000  # characters of a name, mangled or not

_BUILTIN = {
    "v": "void",
    "w": "wchar_t",
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned int",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "n": "__int128",
    "o": "unsigned __int128",
    "f": "float",
    "d": "double",
    "e": "long double",
    "g": "__float128",
    "z": "...",
    "Dn": "decltype(nullptr)",
    "Di": "char32_t",
    "Ds": "char16_t",
    "Du": "char8_t",
    "Da": "auto",
    "Dc": "decltype(auto)",
    "Dh": "_Float16",
}
_STANDARD = {
    "St": "std",
    "Sa": "std::allocator",
    "Sb": "std::basic_string",
    "Ss": "std::string",
    "Si": "std::istream",
    "So": "std::ostream",
    "Sd": "std::iostream",
}
_OPERATORS = {
    "nw": " new", "na": " new[]", "dl": " delete", "da": " delete[]", "ps": "+", "ng": "-",
    "ad": "&", "de": "*", "co": "~", "pl": "+", "mi": "-", "ml": "*", "dv": "/", "rm": "%",
    "an": "&", "or": "|", "eo": "^", "aS": "=", "pL": "+=", "mI": "-=", "mL": "*=", "dV": "/=",
    "rM": "%=", "aN": "&=", "oR": "|=", "eO": "^=", "ls": "<<", "rs": ">>", "lS": "<<=",
    "rS": ">>=", "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "ss": "<=>",
    "nt": "!", "aa": "&&", "oo": "||", "pp": "++", "mm": "--", "cm": ",", "pm": "->*", "pt": "->",
    "cl": "()", "ix": "[]", "qu": "?",
}  # fmt: skip
_SUFFIX = {"j": "u", "l": "l", "m": "ul", "x": "ll", "y": "ull"}


# nvcc gives the anonymous namespace of each file a name of its own.
_ANONYMOUS = re.compile(r"_GLOBAL__N_|_INTERNAL_[0-9a-f]{8}_|_NV_ANON_NAMESPACE")


# With -rdc=true a static function has its file's name before its own, and the former's length.
_STATIC = re.compile(r"__nv_static_(\d{1,4})__")


class Name(NamedTuple):
    """A demangled function."""

    written: (
        str  # with namespaces and template arguments, as one names it: "space::tile<float, 16>"
    )
    parameters: tuple[str, ...] | None  # the types; None: it is no function

    @property
    def plain(self) -> str:
        """Without namespaces and template arguments."""
        return _last(self.written)

    @property
    def whole(self) -> str:
        shown = [] if self.parameters == ("void",) else self.parameters or ()
        return self.written if self.parameters is None else f"{self.written}({', '.join(shown)})"


def _last(written: str) -> str:
    depth, begin = 0, 0
    for at, letter in enumerate(written):
        depth += (letter in "<(") - (letter in ">)")
        if depth == 0 and written[at : at + 2] == "::":
            begin = at + 2
    return written[begin:].split("<")[0] or written


_AUTO = [f"auto:{k}" for k in range(1, 33)]  # a lambda's parameters that are declared so


class _Failure(Exception):
    """The name is not mangled by the rules that this file knows."""


class _Type(NamedTuple):
    """A type's text, in two parts: those of "int (*" and ")[4]"."""

    before: str
    after: str = ""

    def __str__(self) -> str:
        return self.before + self.after


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.seen: list[_Type] = []  # what S_, S0_, ... stand for
        self.arguments: list[str] = []  # what T_, T0_, ... stand for
        self.depth = 0

    # ---- reading ----

    def peek(self, n: int = 1) -> str:
        return self.text[self.at : self.at + n]

    def take(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def need(self, text: str) -> None:
        if not self.take(text):
            raise _Failure(f"expected {text} at {self.at}")

    def matched(self, pattern: str) -> re.Match[str]:
        found = re.compile(pattern).match(self.text, self.at)
        if found is None:
            raise _Failure(f"expected {pattern} at {self.at}")
        self.at = found.end()
        return found

    def number(self) -> int:
        return int(self.matched(r"\d{1,6}")[0])

    def remember(self, shown: _Type) -> _Type:
        if len(str(shown)) > _LONGEST:
            raise _Failure("too long")
        self.seen.append(shown)
        return shown

    def enter(self) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Failure("too deep")

    # ---- names ----

    def encoding(self) -> Name:
        """A name, and of a function the types of its parameters."""
        written, templated = self.name()
        if self.at >= len(self.text) or self.peek() in (".", "E", "$"):
            return Name(written, None)
        if templated:
            self.type()  # what it returns
        parameters = []
        while self.at < len(self.text) and self.peek() not in (".", "E", "$"):
            parameters.append(str(self.type()))
        return Name(written, tuple(parameters))

    def name(self) -> tuple[str, bool]:
        """A name, and whether it ends with template arguments."""
        self.enter()
        try:
            if self.take("N"):
                return self.nested()
            if self.take("Z"):
                return self.local()
            if self.peek() == "S" and self.peek(2) != "St":
                prefix = str(self.substitution())
                return prefix + self.template_arguments(), True
            prefix = "std::" if self.take("St") else ""
            written = prefix + self.unqualified("")
            if self.peek() == "I":
                self.remember(_Type(written))
                return written + self.template_arguments(keep=True), True
            return written, False
        finally:
            self.depth -= 1

    def nested(self) -> tuple[str, bool]:
        self.matched("[rVK]*[RO]?")
        written, templated = "", False
        while not self.take("E"):
            if self.peek() == "S" and self.peek(2) != "St" and not written:
                written = str(self.substitution())
                continue
            if self.peek() == "I":
                written += self.template_arguments(keep=True)
                templated = True
            elif self.peek() == "T" and not written:
                written = self.parameter()
            elif self.take("St"):
                written, templated = "std", False
                continue
            else:
                part = self.unqualified(_last(written))
                if part:  # else of an anonymous namespace, which one does not write
                    written = f"{written}::{part}" if written else part
                templated = False
            if self.peek() != "E":
                self.remember(_Type(written))
        return written, templated

    def local(self) -> tuple[str, bool]:
        """Something within a function, such as a lambda."""
        outer = self.encoding()
        self.need("E")
        if self.take("s"):
            self.matched(r"(_\d|__\d+_)?")
            return f"{outer.whole}::string literal", False
        if self.take("d"):
            self.matched(r"\d*_")
        inner, templated = self.name()
        self.matched(r"(_\d|__\d+_)?")
        return f"{outer.whole}::{inner}", templated

    def unqualified(self, within: str) -> str:
        self.matched("L*")
        if self.peek().isdigit():
            length = self.number()
            name = self.peek(length)
            self.at += length
            if len(name) < length:
                raise _Failure("a name ends too early")
            shown = "" if _ANONYMOUS.match(name) else name
        elif self.take("Ut"):
            number = self.matched(r"(\d*)_")[1]
            shown = f"'unnamed{number}'"
        elif self.take("Ul"):
            parameters, outer = [], self.arguments
            self.arguments = _AUTO
            while not self.take("E"):
                parameters.append(str(self.type()))
            self.arguments = outer
            number = self.matched(r"(\d*)_")[1]
            inside = "" if parameters == ["void"] else ", ".join(parameters)
            shown = f"{{lambda({inside})#{int(number) + 2 if number else 1}}}"
        elif self.take("cv"):
            shown = f"operator {self.type()}"
        elif self.peek() in "CD" and self.peek(2)[1:].isdigit():
            shown = ("~" if self.peek() == "D" else "") + within
            self.at += 2
        elif self.peek(2) in _OPERATORS:
            shown = f"operator{_OPERATORS[self.peek(2)]}"
            self.at += 2
        else:
            raise _Failure(f"no name at {self.at}")
        while self.take("B"):  # an ABI tag, as Numba's hash of the types: no part of the name
            length = self.number()
            self.at += length
        return shown

    def substitution(self) -> _Type:
        if self.peek(2) in _STANDARD:
            self.at += 2
            return _Type(_STANDARD[self.text[self.at - 2 : self.at]])
        index = self.matched("S([0-9A-Z]{0,4})_")[1]
        return self.of_list(self.seen, index, 36)

    def parameter(self) -> str:
        index = self.matched(r"T(\d{0,4})_")[1]
        number = int(index) + 1 if index else 0
        if number >= len(self.arguments):
            raise _Failure("no such template argument")
        return self.arguments[number]

    def of_list(self, seen: list[_Type], index: str, base: int) -> _Type:
        number = int(index, base) + 1 if index else 0
        if number >= len(seen):
            raise _Failure("no such substitution")
        return seen[number]

    # ---- template arguments ----

    def template_arguments(self, keep: bool = False) -> str:
        """ "<float, 16>"; "" if there are none."""
        if not self.take("I"):
            return ""
        own = [*self.argument_list()]
        if keep:
            self.arguments = own
        shown = f"<{', '.join(one for one in own if one)}>"
        if len(shown) > _LONGEST:
            raise _Failure("too long")
        return shown

    def argument_list(self) -> Iterator[str]:
        while not self.take("E"):
            yield self.argument()

    def argument(self) -> str:
        self.enter()
        try:
            if self.take("J"):
                return ", ".join(self.argument_list())
            if self.take("L"):
                return self.literal()
            if self.take("XadL_Z"):
                shown = self.address()
                self.need("E")
                return shown
            if self.take("X"):
                if self.peek() != "T":
                    raise _Failure("an expression")
                shown = str(self.type())  # of a parameter of the template
                self.need("E")
                return shown
            return str(self.type())
        finally:
            self.depth -= 1

    def literal(self) -> str:
        if self.take("_Z"):
            return self.address()
        kind = self.peek()
        shown = str(self.type())
        value = self.matched("n?[0-9a-f]*")[0].replace("n", "-")
        self.need("E")
        if kind == "b" and value in ("0", "1"):
            return ("false", "true")[int(value)]
        if kind == "i":
            return value
        return value + _SUFFIX[kind] if kind in _SUFFIX else f"({shown}){value}"

    def address(self) -> str:
        """Of a function or a variable."""
        kept = self.arguments
        name = self.encoding()
        self.arguments = kept
        self.need("E")
        return f"&{name.written}"

    # ---- types ----

    def type(self) -> _Type:
        self.enter()
        try:
            return self.any_type()
        finally:
            self.depth -= 1

    def any_type(self) -> _Type:
        code = self.peek()
        if code in ("P", "R", "O"):
            self.at += 1
            return self.remember(_pointer(self.type(), {"P": "*", "R": "&", "O": "&&"}[code]))
        qualifiers = self.matched("r?V?K?")[0]
        if qualifiers:
            words = {"r": "__restrict__", "V": "volatile", "K": "const"}
            shown = self.type()
            for letter in reversed(qualifiers):
                shown = _qualified(shown, words[letter])
            return self.remember(shown)
        for n in (2, 1):
            if self.peek(n) in _BUILTIN:
                self.at += n
                return _Type(_BUILTIN[self.text[self.at - n : self.at]])
        return self.compound(code)

    def compound(self, code: str) -> _Type:
        if code == "F":
            return self.remember(self.function())
        if code == "A":
            length = self.matched(r"A(\d*)_")[1]
            of = self.type()
            space = "" if of.before.endswith(" ") else " "
            return self.remember(_Type(of.before + space, f"[{length}]{of.after}"))
        if code == "M":
            self.at += 1
            outer, member = self.type(), self.type()
            return self.remember(_pointer(member, f"{outer}::*"))
        if self.take("Dp"):
            return self.remember(self.type())
        if self.take("Dv"):
            length = self.matched(r"(\d+)_")[1]
            return self.remember(_Type(f"{self.type()} __vector({length})"))
        if self.take("u"):
            return self.remember(_Type(self.unqualified("")))
        if code == "T":
            shown = self.remember(_Type(self.parameter()))
        elif code == "S" and self.peek(2) != "St":
            shown = self.substitution()
            if self.peek() != "I":
                return shown
        else:
            return self.remember(_Type(self.class_name()))
        if self.peek() == "I":
            return self.remember(_Type(str(shown) + self.template_arguments()))
        return shown

    def class_name(self) -> str:
        kept = self.arguments
        written, _ = self.name()
        self.arguments = kept
        return written

    def function(self) -> _Type:
        self.need("F")
        self.take("Y")
        returned = self.type()
        parameters = []
        while not self.take("E"):
            parameters.append(str(self.type()))
        inside = "" if parameters == ["void"] else ", ".join(parameters)
        return _Type(f"{returned} ", f"({inside})")


def _pointer(of: _Type, mark: str) -> _Type:
    if not of.after:
        space = "" if of.before[-1:] in "*&" else " "
        return _Type(f"{of.before}{space}{mark}")
    if of.after.startswith(")"):
        return _Type(of.before + mark, of.after)
    return _Type(f"{of.before}({mark}", f"){of.after}")


def _qualified(shown: _Type, word: str) -> _Type:
    if shown.after.startswith(")") or shown.before.endswith(("*", "&")):
        return _Type(f"{shown.before} {word}", shown.after)
    if word == "const" and not shown.after:
        return _Type(f"const {shown.before}")
    return _Type(f"{shown.before} {word}".rstrip(), shown.after)


@lru_cache(maxsize=4096)
def demangled(name: str) -> Name:
    """A mangled name's parts; of any other name the name itself."""
    if (static := _STATIC.match(name)) and name.startswith(
        "_Z", end := static.end() + int(static[1])
    ):
        name = name[end:]
    if not name.startswith("_Z") or len(name) > _LONGEST:
        return Name(name, None)
    reader = _Reader(name)
    reader.at = 2
    try:
        return reader.encoding()
    except (_Failure, RecursionError, IndexError):
        return Name(name, None)


def normal(written: str) -> str:
    """A name without what does not matter: blanks, suffixes of numbers, casts of them."""
    text = re.sub(r"\(\s*(?:unsigned\s+|signed\s+)?\w+\s*\)\s*(?=-?\d)", "", written)
    text = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", text)
    text = re.sub(r"\bunsigned\b(?!\s+(?:int|long|char|short|__int128))", "unsigned int", text)
    text = re.sub(r"\b(long|short)\s+int\b", r"\1", text)
    text = re.sub(r"\b(?:half|__half)\b", "__half", text)
    text = re.sub(r"\b(?:nv_bfloat16|__nv_bfloat16)\b", "__nv_bfloat16", text)
    text = re.sub(r"\s+", " ", text.strip())
    return re.sub(r"\s*([<>,:*&()\[\]])\s*", r"\1", text)


def variable_name(name: str) -> str:
    """The last part of a variable's name: "tile" for "_ZZ6kernelPfE4tile".

    Compilers split arrays whose indices are constants: "tile_$_4_$_3" is tile[4][3].
    """
    name, *pieces = name.split("_$_")
    return _variable_name(name) + "".join(f"[{index}]" for index in pieces)


def _variable_name(name: str) -> str:
    found = demangled(name)
    if found.written != name:
        return found.plain
    if name.startswith("_Z"):
        for digits in re.finditer(r"\d+", name):
            for cut in range(digits.start(), digits.end()):
                length, start = int(name[cut : digits.end()]), digits.end()
                rest = name[start + length :]
                if start + length <= len(name) and re.fullmatch(r"(_\d+|E)?", rest):
                    return name[start : start + length]
    return name
