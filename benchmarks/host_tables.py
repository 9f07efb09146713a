"""The tables of NumPy arrays in and out, from the step `host` of benchmarks/gpu.py."""

from __future__ import annotations

from cells import Record, markdown, number, size, times, where

NOT_YET = "Not yet measured."
PEERS = {"cupy": "CuPy", "torch": "PyTorch", "torch_pinned": "PyTorch, pinned"}
WITHIN = 1.3  # of the serial floor, from SIZE on
SIZE = 4096
STREAMED = 0.85  # of the rate with all of the memory
SEVERAL = {2: 1.8}  # times as fast as one GPU


def _part(results: Record | None, name: str) -> list[Record]:
    return list((results or {}).get("host", {}).get(name, ()))


def _mark(text: str, good: bool) -> str:
    return f"{text} ✓" if good else text


def summary(results: Record | None) -> str:
    """For the README: three sizes."""
    lines = [line for line in _part(results, "gemm") if line["n"] in (512, 4096, 16384)]
    if not lines or results is None:
        return NOT_YET
    header = ("n", "smemkern, ms", *PEERS.values())
    rows = [
        (f"{line['n']}", number(line["ms"]["smemkern"]), *(number(line["ms"][p]) for p in PEERS))
        for line in lines
    ]
    return f"{where(results['host'])}.\n\n" + markdown(header, rows, 0)


def products(results: Record | None) -> str:
    """Square products of float32, beside the peers and what the bus allows."""
    lines = _part(results, "gemm")
    if not lines or results is None:
        return NOT_YET
    header = ("n", "smemkern", *PEERS.values(), "pinned arrays", "× best peer", 'accuracy="norm"')
    header = (*header, "× best peer", "serial floor", "of it", "both ways at once", "kernel")
    rows = []
    for line in lines:
        ms = line["ms"]
        best = min(ms[peer] for peer in PEERS)
        ahead = best / ms["smemkern"]
        floor = ms["smemkern"] / line["floor_ms"]
        rows.append(
            (
                *(f"{line['n']}", number(ms["smemkern"]), *(number(ms[peer]) for peer in PEERS)),
                *(number(ms["smemkern_pinned_inputs"]), _mark(times(ahead), ahead >= 1)),
                *(number(ms["smemkern_norm"]), times(best / ms["smemkern_norm"])),
                number(line["floor_ms"]),
                _mark(times(floor), floor <= WITHIN) if line["n"] >= SIZE else "",
                *(number(line["overlapped_floor_ms"]), number(line["kernel_ms"])),
            )
        )
    bus = results["host"]["bus_gb_s"]
    return (
        f"Milliseconds of whole calls, in turns. The bus moves {bus['in']:.0f} GB/s in, "
        f"{bus['out']:.0f} out, {bus['both']:.0f} both ways at once; the serial floor is all bytes "
        f"one way after the other, or the kernel. {where(results['host'])}.\n\n"
        + markdown(header, rows, 0)
    )


def transposes(results: Record | None) -> str:
    lines = _part(results, "transpose")
    if not lines:
        return NOT_YET
    header = ("shape", "smemkern", "CuPy", "PyTorch", "NumPy", "serial floor", "both ways at once")
    names = ("smemkern", "cupy", "torch", "numpy")
    rows = [
        (
            *(size(line["shape"]), *(number(line["ms"][name]) for name in names)),
            *(number(line["floor_ms"]), number(line["overlapped_floor_ms"])),
        )
        for line in lines
    ]
    return markdown(header, rows, 1)


def limited(results: Record | None) -> str:
    """With less memory than the matrices take."""
    lines = _part(results, "streamed")
    if not lines:
        return NOT_YET
    header = ("n", "memory, MB", "ms", "with all of it", "of that rate", "same bits")
    rows = []
    for line in lines:
        share = line["ms"]["whole"] / line["ms"]["streamed"]
        rows.append(
            (
                *(f"{line['n']}", f"{line['max_memory'] / 1e6:.0f}"),
                *(number(line["ms"]["streamed"]), number(line["ms"]["whole"])),
                *(_mark(times(share), share >= STREAMED), "yes" if line["same"] else "no"),
            )
        )
    return markdown(header, rows, 0)


def several(results: Record) -> str:
    """One product on several GPUs of one machine: what benchmarks/several.py wrote."""
    header = ("product", "type", "GPUs", "ms", "× one", "TFLOP/s", "same bits")
    rows = []
    for line in results["several"]:
        for count in sorted(line["ms"], key=int):
            gain = line["speedup"][count]
            wanted = gain >= SEVERAL.get(int(count), float("inf"))
            rows.append(
                (
                    *(size(line["shape"]), line["dtype"], count, number(line["ms"][count])),
                    *(_mark(times(gain), wanted), number(line["tflops"][count])),
                    "yes" if line["same"] else "no",
                )
            )
    machine = f"{results['gpus']} GPUs and {results['cores']} cores"
    return f"{machine}: {where(results)}.\n\n" + markdown(header, rows, 2)
