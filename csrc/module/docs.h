/* Docstrings of smemkern._core. Python's inspect parses the first line of each as signature. */
#ifndef SMK_DOCS_H
#define SMK_DOCS_H

static const char gemm_doc[] =
    "gemm(a, b, *, variant='auto', accuracy='float32', out=None, alpha=1.0, beta=0.0, device=None, "
    "stream=None, max_memory=None, devices=None, progress=None, **params)\n"
    "--\n\n"
    "alpha * (a @ b) + beta * out, computed by one of the kernels.\n\n"
    "Parameters\n"
    "----------\n"
    "a, b : array_like, float32, float64, float16 or bfloat16\n"
    "    Shapes (..., M, K) and (..., K, N), with numpy.matmul's rules for 1-D operands and for\n"
    "    broadcasting batches. Any strides are allowed: rows with unit stride are read in place,\n"
    "    anything else is packed once. Big-endian arrays are converted. If the dtypes differ, the\n"
    "    product is computed in the wider one, and in float32 for float16 with bfloat16. K = 0\n"
    "    gives beta * out.\n"
    "    Arrays of CuPy, PyTorch, JAX, Numba and other libraries that support DLPack or\n"
    "    __cuda_array_interface__ are used in place on their GPU, on their library's current\n"
    "    stream; the call returns when its work is enqueued there. An operand that the variant\n"
    "    cannot read in place is copied on the GPU. Dtypes of device arrays are not converted.\n"
    "    Mixing device arrays with host arrays raises ValueError.\n"
    "variant : str\n"
    "    A row of variants('gemm'); 'auto' selects one by device, dtype, sizes and accuracy.\n"
    "accuracy : {'float32', 'norm', 'tf32', 'tf32-norm'}\n"
    "    Which variants 'auto' may select for float32 and float64. 'float32': every element is as\n"
    "    accurate as with sums of the dtype. 'norm': the result's norm is that accurate; in rows\n"
    "    of a and columns of b that span more than a factor of 2**17, small elements may lose\n"
    "    bits. 'tf32': operands of float32 are rounded to 11 bits. 'tf32-norm': the result's norm\n"
    "    is as accurate as with 'tf32'; in rows and columns that span more than a factor of "
    "2**29,\n"
    "    small elements may lose bits.\n"
    "out : ndarray or device array, optional\n"
    "    Has the result's shape, and its dtype or, for an ndarray, one that it casts to, as in\n"
    "    numpy.matmul ('same_kind'). May overlap a and b. It stays unchanged if an argument is\n"
    "    illegal, or if memory or a kernel is not available. On device 'cuda', a contiguous out\n"
    "    of the result's dtype that overlaps neither operand is written block by block, so it is\n"
    "    partly written if Ctrl-C or a lost GPU ends the call. An array on a GPU is written in\n"
    "    place, has exactly that dtype, and is written through a copy on the GPU if it overlaps\n"
    "    an operand or has strides that the kernel cannot write.\n"
    "alpha, beta : float\n"
    "    beta needs out; beta = 0 does not read it.\n"
    "device : {None, 'emu', 'cuda', 'cuda:N'}\n"
    "    None: 'cuda' if there is a GPU, else 'emu'.\n"
    "stream : int or object with __cuda_stream__, optional\n"
    "    The address of a CUDA stream. None: the device's own stream, or for device arrays their\n"
    "    library's current one.\n"
    "max_memory : int, optional\n"
    "    Bytes of GPU memory that a call on host arrays may use. None: most of the free memory. A\n"
    "    larger product is computed block by block, with a bit-identical result. On the emulator\n"
    "    max_memory makes the call perform the same steps.\n"
    "devices : sequence of int or 'cuda:N', optional\n"
    "    GPUs among which a product of host arrays is divided, by rows, columns or batch. Used\n"
    "    instead of device.\n"
    "progress : bool or function, optional\n"
    "    For a call on host arrays. True shows a bar (tqdm). A function is called about every\n"
    "    50 ms and at the end, with what is done and the total: bytes of the result, or, on the\n"
    "    emulator without max_memory, blocks. Ctrl-C ends the call.\n"
    "**params : int\n"
    "    Parameters of the variant, such as tile=16; see variants('gemm')[i].params.\n\n"
    "Returns\n"
    "-------\n"
    "ndarray of that dtype, C-contiguous, (..., M, N), or an array of a's library; or out.\n\n"
    "Raises\n"
    "------\n"
    "TypeError, ValueError\n"
    "    For an illegal dtype, shape, variant or parameter; the message lists what is legal.\n"
    "smemkern.Error\n"
    "    One of its subclasses: no device, no compiler, a failed launch, ...\n\n"
    "Notes\n"
    "-----\n"
    "Source: gemm_<variant>.cu in csrc/kernels (rungs) or csrc/kernels/library;\n"
    "variants('gemm')[i].source has the text.\n\n"
    "Examples\n"
    "--------\n"
    ">>> a, b = np.random.rand(123, 77), np.random.rand(77, 211)\n"
    ">>> c = smemkern.gemm(a, b, variant='swizzle')\n";

static const char transpose_doc[] =
    "transpose(a, *, variant='auto', out=None, device=None, stream=None, max_memory=None, "
    "progress=None, **params)\n"
    "--\n\n"
    "A copy with the last two axes swapped, made by one of the kernels.\n\n"
    "Parameters\n"
    "----------\n"
    "a : array_like, or an array on a GPU as in gemm\n"
    "    Shape (..., M, N); elements of 1, 2, 4, 8 or 16 bytes without Python references. Type\n"
    "    and byte order do not matter, because only bits are moved. Any strides are allowed.\n"
    "variant : str\n"
    "    A row of variants('transpose'); 'auto' selects one.\n"
    "out : ndarray, optional\n"
    "    Has exactly the result's shape and dtype. May overlap a. If out is a itself and square,\n"
    "    'auto' and 'sector_aligned' transpose it in place.\n"
    "device, stream, max_memory, progress, **params\n"
    "    See gemm.\n\n"
    "Returns\n"
    "-------\n"
    "ndarray of a's dtype, C-contiguous, (..., N, M), or an array of a's library; or out.\n\n"
    "Raises\n"
    "------\n"
    "TypeError, ValueError, smemkern.Error\n"
    "    See gemm.\n\n"
    "Notes\n"
    "-----\n"
    "Source: transpose_<variant>.cu in csrc/kernels or csrc/kernels/library.\n";

static const char probe_doc[] =
    "probe(x, *, variant='stride_read', device=None, stream=None, **params)\n"
    "--\n\n"
    "Runs a small kernel that demonstrates one property of memory.\n\n"
    "Parameters\n"
    "----------\n"
    "x : array_like of float32, 1-D\n"
    "    At least as long as what the variant reads.\n"
    "variant : str\n"
    "    A row of variants('probe'), whose summary says what it computes.\n"
    "    smemkern.reference.probe computes the same with NumPy.\n"
    "device, stream, **params\n"
    "    See gemm.\n\n"
    "Returns\n"
    "-------\n"
    "ndarray of float32, 1-D.\n\n"
    "Raises\n"
    "------\n"
    "TypeError, ValueError, smemkern.Error\n"
    "    See gemm.\n\n"
    "Notes\n"
    "-----\n"
    "Source: csrc/kernels/probe_<variant>.cu.\n";

static const char observe_doc[] =
    "observe(what, args, kwargs, repeat=0, trace=False, hazards=False, equal_writes=False,\n"
    "        only_if_clean=False, blocks=None, progress=None, by_instruction=False,\n"
    "        recording=None)\n"
    "--\n\n"
    "Run an operation or a Kernel: (result, milliseconds of each of `repeat` more runs, raw trace\n"
    "or None). The other parameters are for traces. hazards: look for hazards. equal_writes: also\n"
    "for races between writes of equal values. only_if_clean: write a Kernel's arrays only if\n"
    "there is no hazard. blocks: run only these (uint64, ascending). progress: is called now and\n"
    "then as progress(blocks done, blocks in total). by_instruction: count also by PTX\n"
    "instruction. recording: (first step, steps, bytes at most, blocks, warps, shared arrays);\n"
    "the result then has two more items, the recording and the places of the arguments' arrays.\n";

static const char plan_doc[] = "plan(op, args, kwargs, /)\n"
                               "--\n\n"
                               "The launches of an operation, without running it. For tests.\n";

static const char watch_doc[] =
    "watch(open, /)\n"
    "--\n\n"
    "True: calls run by smemkern._trace.watch from now on. False: ends one True.\n";

static const char set_timings_doc[] =
    "set_timings(ordinal, timings, /)\n"
    "--\n\n"
    "Sets the table of `auto` for that GPU, in the format of\n"
    "smemkern._variants.cost_model.load. None: reloads the tables of all.\n";

static const char predict_doc[] =
    "predict(timings, op, dtype, accuracy, (M, N, K, batch), sm, multiprocessors, strides,\n"
    "        alignment, /)\n"
    "--\n\n"
    "(index, predicted microseconds, terms) of each timing that applies. strides: smk_strides.\n";

static const char ring_facts_doc[] =
    "ring_facts((M, N, K, batch), (block_m, block_n, split, swapped, multicast, multicast_a),\n"
    "           layout, multiprocessors, itemsize, aligned, /)\n"
    "--\n\n"
    "What the planner counts of a product of fp16, bf16 or tf32: the terms of its time\n"
    "(core/plan_ring.c), then what only the trees use; the terms of the launch that packs its\n"
    "operands; and the load of the device: 0 if up to half of its multiprocessors have a block,\n"
    "1 up to all, 2 more. Not aligned: TMA cannot read both.\n";

static const char gemv_forms_doc[] =
    "gemv_forms((M, N, K, batch), layout, multiprocessors, itemsize, aligned, /)\n"
    "--\n\n"
    "((lanes, threads, split), terms of its time, predicted microseconds) of each form of gemm's\n"
    "gemv (core/plan_gemv.c). Aligned: rows of the matrix begin on 16-byte boundaries.\n";

static const char variants_doc[] =
    "variants()\n"
    "--\n\n"
    "The registry: (op, name, summary, differs_from, min_sm, dtypes, params, ...) of each row.\n";

static const char devices_doc[] =
    "devices()\n"
    "--\n\n"
    "(ordinal, name, sm, multiprocessors, clock_khz, memory_bytes, shared_bytes,\n"
    "driver_version) of each GPU.\n";

static const char config_doc[] =
    "config()\n"
    "--\n\n"
    "Version, number of GPUs, folders, and the state of the driver and of NVRTC.\n";

static const char shared_requests_doc[] =
    "shared_requests(addresses, active, width, op, /)\n"
    "--\n\n"
    "The cost of n requests to shared memory: (wavefronts, ideal, lanes per group), each uint32\n"
    "(n,). addresses: uint64 (n, 32); active: uint32 masks (n,). The caller, smemkern.banks,\n"
    "checks the arguments.\n";

static const char layouts_doc[] =
    "layouts(rows, cols, itemsize, accesses, /)\n"
    "--\n\n"
    "Tries every layout of a tile: (pad, swizzle, wasted, wavefronts, ideal, worst, "
    "conflict_free)\n"
    "of each that keeps the vectors whole and aligned. An access is (r, c, active, width, op): "
    "int64\n"
    "(n, 32) twice, uint32 masks (n,). The caller, smemkern.banks.suggest, checks the arguments.\n";

static const char explain_request_doc[] =
    "explain_request(request, array, /)\n"
    "--\n\n"
    "Words for what a request to shared memory costs. request: (op, 32 addresses, active mask,\n"
    "width, wavefronts, ideal); array: (name, first byte, bytes, bytes per element, columns or 0) "
    "of\n"
    "the array that it accesses, or None.\n";

static const char explain_layout_doc[] =
    "explain_layout(requests, array, /)\n"
    "--\n\n"
    "Words for the layout of the array that suits these requests best, and its price. None:\n"
    "nothing is known of its elements. Arguments as explain_request's.\n";

static const char explain_hazard_doc[] =
    "explain_hazard(kind, party, other, space, count, message, where, /)\n"
    "--\n\n"
    "Words for a hazard, and for its cure, which may be None. A party is (file, line, PTX "
    "line,\n"
    "text, block, thread).\n";

static const char explain_element_doc[] =
    "explain_element(array, at, width, text, /)\n"
    "--\n\n"
    "The element at a byte offset in an array of shared memory, as the source writes it. width: "
    "of\n"
    "the access; text: its instruction, or None. array: as for explain_request, and rows or 0.\n";

static const char shared_arrays_doc[] =
    "shared_arrays(ptx, entry, dynamic_bytes, /)\n"
    "--\n\n"
    "The arrays in shared memory of a launch of the entry; None: of all entries. Rows are (name,\n"
    "first byte, bytes, bytes per element or 0, columns or 0, rows or 0).\n";

static const char last_transfer_doc[] =
    "last_transfer()\n"
    "--\n\n"
    "The fields of smemkern._device.transfer.Transfer, or None; see smemkern.last_transfer.\n";

static const char event_record_doc[] = "event_record(ordinal, stream, /)\n"
                                       "--\n\n"
                                       "A CUDA event, recorded on that stream of a GPU.\n";

static const char event_query_doc[] = "event_query(event, /)\n"
                                      "--\n\n"
                                      "Whether the work before the event has finished.\n";

static const char stream_wait_event_doc[] =
    "stream_wait_event(event, stream, /)\n"
    "--\n\n"
    "Makes a stream of the same GPU wait for the event; None: the default stream.\n";

static const char trim_doc[] =
    "trim(device, /)\n"
    "--\n\n"
    "Frees what is cached for later calls, and returns its bytes; see smemkern.empty_cache.\n";

static const char nvrtc_compile_doc[] =
    "nvrtc_compile(source, file_name, entry, names, headers, options, /)\n"
    "--\n\n"
    "PTX that NVRTC makes of CUDA C++, as bytes. `names` and `headers`: of headers in memory.\n";

static const char cache_load_doc[] = "cache_load(key, /)\n"
                                     "--\n\n"
                                     "The bytes stored under a key of 32 bytes, or None.\n";

static const char cache_store_doc[] = "cache_store(key, text, /)\n"
                                      "--\n\n"
                                      "Stores bytes in the cache on disk.\n";

static const char configure_doc[] = "configure(images, kernels)\n"
                                    "--\n\n"
                                    "Sets the folders of compiled kernels and of their sources.\n";

#endif
