"""The tables of calls with NumPy arrays, from the step `host` of benchmarks/gpu.py."""

from __future__ import annotations

from cells import Record, markdown, number, size, times, where

NOT_YET = "Not yet measured."
PEERS = {"cupy": "CuPy", "torch": "PyTorch", "torch_pinned": "PyTorch, pinned"}
# Goals, which a ✓ marks as met.
WITHIN = 1.3  # times the serial floor, for n >= SIZE
SIZE = 4096
STREAMED = 0.85  # of the rate with all of the memory
SEVERAL = {2: 1.8}  # speed-up over one GPU, by number of GPUs


def _part(results: Record | None, name: str) -> list[Record]:
    return list((results or {}).get("host", {}).get(name, ()))


def _mark(text: str, good: bool) -> str:
    return f"{text} ✓" if good else text


def summary(results: Record | None) -> str:
    """For the README: milliseconds per call, three sizes."""
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
    """Square products of float32, compared with the peers and with the limits of the bus."""
    lines = _part(results, "gemm")
    if not lines or results is None:
        return NOT_YET
    header = ("n", "smemkern", *PEERS.values(), "pinned arrays", "× best peer", 'accuracy="norm"')
    header = (*header, "× best peer", "serial floor", "× floor", "overlapped floor", "kernel")
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
        f"Milliseconds per call, interleaved. × best peer: time of the fastest peer over ours. The "
        f"bus moves {bus['in']:.0f} GB/s to the GPU, {bus['out']:.0f} back, {bus['both']:.0f} in "
        "both directions at once. Serial floor: the larger of the kernel's time and that of all "
        "transfers without overlap; overlapped floor: the same with transfers in both directions "
        "at once. "
        f"{where(results['host'])}.\n\n" + markdown(header, rows, 0)
    )


def transposes(results: Record | None) -> str:
    lines = _part(results, "transpose")
    if not lines:
        return NOT_YET
    header = ("shape", "smemkern", "CuPy", "PyTorch", "NumPy", "serial floor", "overlapped floor")
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
    """Products with less device memory than the matrices need."""
    lines = _part(results, "streamed")
    if not lines:
        return NOT_YET
    header = ("n", "memory, MB", "ms", "ms, unlimited", "relative speed", "same bits")
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
    """One product on several GPUs of one machine, from a record of benchmarks/several.py."""
    header = ("product", "type", "GPUs", "ms", "× one GPU", "TFLOP/s", "same bits")
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
