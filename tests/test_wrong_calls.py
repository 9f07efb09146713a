"""Wrong calls, of everything that is public, beside those of test_arguments.py.

Each is refused with the documented exception and a message that says what was given and what was
wanted; what could have been written has the same bytes as before; and the next call works.
Calls on arrays in a GPU's memory are in cuda/fake_wrong_calls.py.
"""

import re

import numpy as np
import pytest

from wrong_calls import ALL, S, gemm, ones, scale


def written(args, kwargs):
    """The arrays that the call could have written, each with its bytes."""
    arrays = [x for x in (*args, *kwargs.values()) if isinstance(x, np.ndarray) and x.dtype != "O"]
    return [(array, array.tobytes()) for array in arrays]


def test_there_are_enough():
    assert len(ALL) >= 120


@pytest.mark.parametrize(("exception", "words", "function", "args", "kwargs"), ALL)
def test_refused(exception, words, function, args, kwargs):
    before = written(args, kwargs)
    with pytest.raises(exception) as raised:
        function(*args, **kwargs)
    assert re.search(words, str(raised.value), re.DOTALL), raised.value
    assert len(str(raised.value)) > 12, "a message says something"
    assert not isinstance(raised.value, SystemError)
    for array, content in before:
        assert array.tobytes() == content
    assert np.array_equal(gemm(S, S, device="emu", variant="naive"), S @ S)
    x = ones(8)
    scale(1, 8, x, 2.0, 8, device="emu")
    assert np.array_equal(x, 2 * ones(8))
