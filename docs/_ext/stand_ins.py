"""Replacements for optional packages, so that modules that need them can be imported."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any


def _custom_op(*_args: Any, **_kw: Any) -> Any:
    """torch.library.custom_op that returns the function unchanged."""

    def keep(function: Any) -> Any:
        function.register_fake = function.register_autograd = lambda *args, **kw: None
        return function

    return keep


def setup(_app: Any) -> dict[str, bool]:
    if find_spec("torch") is None:
        torch = ModuleType("torch")
        torch.__dict__.update(
            Tensor=type("Tensor", (), {}), library=SimpleNamespace(custom_op=_custom_op)
        )
        sys.modules["torch"] = torch
    return {"parallel_read_safe": True}
