"""Each test that runs on a GPU alone has a twin that runs everywhere, or a reason why not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

import first_run

HERE = Path(__file__).parent
ARRAYS = "cuda/test_device_arrays.py"
A_LIBRARY = "that the real library says of its arrays and streams what the fake's arrays say"
BOTH = "that both devices agree; the twin holds the emulator to"

# A test, its twin, and what the twin leaves to a GPU. Where the twin is None: why there is none.
GPU_ONLY = {
    f"{ARRAYS}::test_cupy": ("cuda/fake_arrays.py::interface", A_LIBRARY),
    f"{ARRAYS}::test_cupy_stream": ("cuda/fake_arrays.py::streams", A_LIBRARY),
    f"{ARRAYS}::test_torch": ("cuda/fake_exchange.py::in_place", A_LIBRARY),
    f"{ARRAYS}::test_torch_stream": ("cuda/fake_exchange.py::streams", A_LIBRARY),
    f"{ARRAYS}::test_numba": ("cuda/fake_libraries.py::numba", A_LIBRARY),
    f"{ARRAYS}::test_jax": ("cuda/fake_libraries.py::jax", A_LIBRARY),
    f"{ARRAYS}::test_gemm_of_torch": ("cuda/fake_matrices.py::gemm_in_place", A_LIBRARY),
    f"{ARRAYS}::test_gemm_of_cupy": ("cuda/fake_matrices.py::batches_and_vectors", A_LIBRARY),
    f"{ARRAYS}::test_what_is_beside_out_stays": (
        "test_wgmma_tiles.py::test_a_row_that_ends_within_16_bytes",
        "that what follows the rows of C stays, where it is in an array too",
    ),
    f"{ARRAYS}::test_transpose_of_torch": ("cuda/fake_matrices.py::transposes", A_LIBRARY),
    f"{ARRAYS}::test_transpose_of_any_view_of_torch": ("cuda/fake_views.py::inputs", A_LIBRARY),
    f"{ARRAYS}::test_square_of_torch_in_place": ("cuda/fake_views.py::over_inputs", A_LIBRARY),
    f"{ARRAYS}::test_views_of_torch": ("cuda/fake_views.py::results", A_LIBRARY),
    f"{ARRAYS}::test_views_of_cupy": (
        "cuda/fake_matrices.py::backwards_as_cupy_says_it",
        A_LIBRARY,
    ),
    f"{ARRAYS}::test_out_over_the_inputs": ("cuda/fake_views.py::over_inputs", A_LIBRARY),
    f"{ARRAYS}::test_nothing_waits": (
        "cuda/fake_exchange.py::kernels_are_queued",
        "the order of real streams",
    ),
    f"{ARRAYS}::test_capture_in_a_graph": (
        "cuda/gpu_cases.c::case_capture",
        "that a real graph can be replayed",
    ),
    "emu/test_emu_matrix.py::test_as_the_gpu_here": (
        "emu/test_emu_matrix.py::test_as_recorded_on_an_h200",
        f"{BOTH} an H200's digests",
    ),
    "emu/test_random_programs.py::test_both_devices_leave_the_same": (
        "emu/test_random_programs.py::test_the_emulator_leaves_what_the_gpu_left",
        f"{BOTH} an H200's digests",
    ),
    "emu/test_random_modules.py::test_both_devices_leave_the_same": (
        "emu/test_random_modules.py::test_the_emulator_leaves_what_the_model_leaves",
        f"{BOTH} a model in Python, which leaves out a checksum of arithmetic",
    ),
    "emu/test_emu_texture.py::test_both_devices_sample_the_same_bits": (
        "emu/test_emu_texture.py::test_linear_sampling",
        f"{BOTH} a model in NumPy within the filter's precision",
    ),
    "test_corpus.py::test_devices_agree_bit_for_bit": (
        "test_corpus.py::test_results",
        f"{BOTH} NumPy within a tolerance: another compiler makes other bits of a source",
    ),
    "test_bench.py::test_auto_takes_what_is_predicted_to_be_fastest": (
        "cuda/fake_calls.py::predicted",
        "rows that the fake has no kernels of",
    ),
    "test_bench.py::test_bench_on_a_gpu": (
        "cuda/fake_calls.py::timed",
        "that times are a GPU's",
    ),
    "test_cuda_api.py::test_callers_stream": (
        "cuda/fake_calls.py::callers_stream",
        "the order of real streams",
    ),
    "test_cuda_api.py::test_threads": (
        "cuda/test_faults.py::test_threads",
        "every row's own kernels at the same time",
    ),
    "test_cuda_api.py::test_numbered_device": (
        "cuda/fake_calls.py::numbered",
        "that the driver counts from 0",
    ),
    "test_dask.py::test_chunks_of_cupy_stay_on_the_gpu": (
        "test_dask.py::test_results_have_the_meta_of_the_chunks",
        "that CuPy's chunks are computed where they are",
    ),
    "test_large.py::test_transpose": (
        "test_plan.py::test_more_than_2_31_elements",
        "the kernels' own 64-bit arithmetic: an hour of emulation",
    ),
    "test_large.py::test_gemm": (
        "test_plan.py::test_more_than_2_31_elements",
        "the kernels' own 64-bit arithmetic: an hour of emulation",
    ),
    "test_occupancy.py::test_equal_to_the_driver": (
        "test_occupancy.py::test_equal_to_cuda_occupancy",
        "the driver's word, in place of NVIDIA's header",
    ),
    "test_profile.py::test_the_real_one": (
        "test_profile.py::test_recorded_totals_are_as_predicted",
        "that ncu still prints what was recorded of it",
    ),
    "test_roofline.py::test_measured": (None, "measures rates of a GPU, which nothing else has"),
}


def name_of(item: pytest.Item) -> str:
    return f"{item.path.relative_to(HERE)}::{item.originalname}"


def needs_gpu(item: pytest.Item) -> bool:
    return any("GPU" in mark.kwargs.get("reason", "") for mark in item.iter_markers("skipif"))


def on_gpu_alone(items: Iterable[pytest.Item]) -> set[str]:
    """Tests of which a case needs a GPU, and no other case is the same but for the device."""
    cases: dict[tuple, list[pytest.Item]] = {}
    for item in items:
        parameters = getattr(item, "callspec", None)
        same = sorted(
            (name, id(value))  # some of these objects are megabytes of text
            for name, value in (parameters.params.items() if parameters else ())
            if name != "device"
        )
        cases.setdefault((name_of(item), *same), []).append(item)
    return {name for (name, *_), same in cases.items() if all(map(needs_gpu, same))}


@pytest.fixture
def ours(request) -> list[pytest.Item]:
    """The tests of this run, which is of whole files."""
    if request.config.option.keyword or any("::" in given for given in request.config.args):
        pytest.skip("tests were picked, perhaps without their twins")
    collected = request.session.stash[first_run.COLLECTED]
    return [item for item in collected if item.path.is_relative_to(HERE)]


def test_all_are_listed(ours) -> None:
    found = on_gpu_alone(ours)
    missing = sorted(found - GPU_ONLY.keys())
    assert not missing, "need a twin, or a reason why they have none"
    needless = sorted(GPU_ONLY.keys() & {name_of(item) for item in ours} - found)
    assert not needless, "have a twin among their own cases: they need no entry"


def test_a_missing_twin_is_found(ours) -> None:
    of_gpu = [item for item in ours if needs_gpu(item)]
    assert on_gpu_alone(of_gpu) == {name_of(item) for item in of_gpu}


@pytest.mark.parametrize("name", GPU_ONLY)
def test_twins_exist(name) -> None:
    twin, reason = GPU_ONLY[name]
    assert len(reason) > 20
    for path, function in (x.split("::") for x in (name, twin) if x):
        text = (HERE / path).read_text()
        assert re.search(rf"^(def|static void) {function}\(", text, re.MULTILINE), (path, function)
        if path.startswith("cuda/fake_"):
            assert function in text.split("\nCASES = ")[1].split(")")[0]
