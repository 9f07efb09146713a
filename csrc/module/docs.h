/* Docstrings of smemkern._core. The first line of each is the signature that inspect reads. */
#ifndef SMK_DOCS_H
#define SMK_DOCS_H

static const char gemm_doc[] =
    "gemm(a, b, *, variant='auto', accuracy='float32', out=None, alpha=1.0, beta=0.0, device=None, "
    "stream=None, max_memory=None, devices=None, progress=None, **params)\n"
    "--\n\n"
    "alpha * (a @ b) + beta * out, by a kernel of the ladder.\n\n"
    "Parameters\n"
    "----------\n"
    "a, b : array_like, float32, float64, float16 or bfloat16\n"
    "    Shapes (..., M, K) and (..., K, N), with numpy.matmul's rules for 1-D operands and for\n"
    "    broadcasting batches. Any strides; rows that lie in memory with unit steps are read in\n"
    "    place, anything else is packed once. Big-endian arrays are converted. Of two dtypes the\n"
    "    wider is computed, float32 of float16 and bfloat16. K = 0 gives beta * out.\n"
    "    Arrays of CuPy, PyTorch, JAX, Numba and others that speak DLPack or\n"
    "    __cuda_array_interface__ are used in place on their GPU, on the stream that their "
    "library\n"
    "    uses now; the call returns when its work is queued there. What the variant cannot read\n"
    "    as it is is copied on the GPU. No dtype is converted, and a mixture with host arrays\n"
    "    raises ValueError.\n"
    "variant : str\n"
    "    A row of variants('gemm'); 'auto' picks one by device, dtype, sizes and accuracy.\n"
    "accuracy : {'float32', 'norm', 'tf32'}\n"
    "    What 'auto' may do with float32. 'float32': no element is worse than fp32 sums make it.\n"
    "    'norm': the result's norm is that accurate; small elements of rows of a or columns of b\n"
    "    that span more than 2**17 may lose bits. 'tf32': operands are rounded to 11 bits.\n"
    "out : ndarray or device array, optional\n"
    "    Of exactly the result's shape and dtype. May overlap a and b. It is not written unless\n"
    "    arguments, memory and kernels are in order; on device 'cuda' a contiguous one that\n"
    "    overlaps neither is then written block by block, and holds some of them if Ctrl-C or a\n"
    "    lost GPU ends the call. An array on a GPU is written in place, or through a copy on the\n"
    "    GPU where it overlaps or has strides that the kernel does not write.\n"
    "alpha, beta : float\n"
    "    beta needs out; beta = 0 does not read it.\n"
    "device : {None, 'emu', 'cuda', 'cuda:N'}\n"
    "    None: 'cuda' if there is a GPU, else 'emu'.\n"
    "stream : int or object with __cuda_stream__, optional\n"
    "    A CUDA stream by its address; None: the device's own, or of device arrays the one that\n"
    "    their library uses now.\n"
    "max_memory : int, optional\n"
    "    Bytes of the GPU's memory that a call on host arrays may use; None: most of what is "
    "free.\n"
    "    What does not fit goes through it block by block, with the same bits in the result.\n"
    "    The emulator takes the same steps, where it is given.\n"
    "devices : sequence of int or 'cuda:N', optional\n"
    "    GPUs that share a product of host arrays, by rows, columns or batch; in place of device.\n"
    "progress : bool or function, optional\n"
    "    Of a call on host arrays: True shows a bar (tqdm), a function is called about every\n"
    "    50 ms and at the end with the result's bytes that are there, and all of them. Ctrl-C "
    "ends\n"
    "    the call.\n"
    "**params : int\n"
    "    The variant's own, as tile=16; see variants('gemm')[i].params.\n\n"
    "Returns\n"
    "-------\n"
    "ndarray of that dtype, C-contiguous, (..., M, N), or an array of a's library; or out.\n\n"
    "Raises\n"
    "------\n"
    "TypeError, ValueError\n"
    "    Dtype, shape, variant or parameter that is not legal; the message says what is.\n"
    "smemkern.Error\n"
    "    One of its kinds: no device, no compiler, a failed launch.\n\n"
    "Notes\n"
    "-----\n"
    "Source: csrc/kernels/gemm_<variant>.cu; variants('gemm')[i].source has the text.\n\n"
    "Examples\n"
    "--------\n"
    ">>> a, b = np.random.rand(123, 77), np.random.rand(77, 211)\n"
    ">>> c = smemkern.gemm(a, b, variant='swizzle')\n";

static const char transpose_doc[] =
    "transpose(a, *, variant='auto', out=None, device=None, stream=None, max_memory=None, "
    "**params)\n"
    "--\n\n"
    "The last two axes swapped, moved in memory by a kernel of the ladder.\n\n"
    "Parameters\n"
    "----------\n"
    "a : array_like, or an array on a GPU as of gemm\n"
    "    Shape (..., M, N); elements of 1, 2, 4, 8 or 16 bytes without Python references, of any\n"
    "    meaning and byte order: only bits move. Any strides.\n"
    "variant : str\n"
    "    A row of variants('transpose'); 'auto' picks one.\n"
    "out : ndarray, optional\n"
    "    Of exactly the result's shape and dtype. May overlap a. A square a that is its own\n"
    "    out is transposed in place by 'auto' and 'sectors'.\n"
    "device, stream, max_memory, progress, **params\n"
    "    As for gemm.\n\n"
    "Returns\n"
    "-------\n"
    "ndarray of a's dtype, C-contiguous, (..., N, M), or an array of a's library; or out.\n\n"
    "Raises\n"
    "------\n"
    "TypeError, ValueError, smemkern.Error\n"
    "    As gemm does.\n\n"
    "Notes\n"
    "-----\n"
    "Source: csrc/kernels/transpose_<variant>.cu.\n";

static const char probe_doc[] =
    "probe(x, *, variant='stride_read', device=None, stream=None, **params)\n"
    "--\n\n"
    "A small kernel that shows one thing about memory.\n\n"
    "Parameters\n"
    "----------\n"
    "x : array_like of float32, 1-D\n"
    "    At least as long as the variant reads.\n"
    "variant : str\n"
    "    A row of variants('probe'), which says what it computes; smemkern.reference.probe "
    "computes\n"
    "    the same with NumPy.\n"
    "device, stream, **params\n"
    "    As for gemm.\n\n"
    "Returns\n"
    "-------\n"
    "ndarray of float32, 1-D.\n\n"
    "Raises\n"
    "------\n"
    "TypeError, ValueError, smemkern.Error\n"
    "    As gemm does.\n\n"
    "Notes\n"
    "-----\n"
    "Source: csrc/kernels/probe_<variant>.cu.\n";

static const char observe_doc[] =
    "observe(what, args, kwargs, repeat=0, trace=False, hazards=False, equal_writes=False,\n"
    "        only_if_clean=False, blocks=None, progress=None)\n"
    "--\n\n"
    "Run an operation or a Kernel and report on it: (result, milliseconds of each of `repeat` "
    "more\n"
    "runs, raw trace or None). What follows is for traces: look for hazards, also for racing\n"
    "writes of equal values, write a Kernel's arrays only if there are none, run only these\n"
    "blocks (uint64, ascending), and tell progress(blocks done, blocks in all) now and then.\n";

static const char plan_doc[] = "plan(op, args, kwargs, /)\n"
                               "--\n\n"
                               "What an operation would launch, without running it: for tests.\n";

static const char set_timings_doc[] = "set_timings(ordinal, timings, /)\n"
                                      "--\n\n"
                                      "What `auto` predicts by on that GPU: as "
                                      "smemkern._timings.load gives; None: all are loaded anew.\n";

static const char predict_doc[] =
    "predict(timings, op, dtype, accuracy, (M, N, K, batch), sm, multiprocessors, strides,\n"
    "        aligned, /)\n"
    "--\n\n"
    "Of the timings that fit: (index, predicted microseconds, terms). strides: smk_strides.\n";

static const char variants_doc[] =
    "variants()\n"
    "--\n\n"
    "The registry: (op, name, summary, differs_from, min_sm, dtypes, params) of each row.\n";

static const char devices_doc[] =
    "devices()\n"
    "--\n\n"
    "GPUs: (ordinal, name, sm, multiprocessors, clock_khz, memory_bytes, shared_bytes,\n"
    "driver_version) of each.\n";

static const char config_doc[] =
    "config()\n"
    "--\n\n"
    "Version, folders, and what was found of the driver and of NVRTC.\n";

static const char shared_requests_doc[] =
    "shared_requests(addresses, active, width, op, /)\n"
    "--\n\n"
    "What n requests to shared memory cost: (wavefronts, ideal, lanes of a group), uint32 of "
    "(n,).\n"
    "addresses: uint64 (n, 32); active: uint32 masks (n,). smemkern.banks checks what it passes.\n";

static const char last_transfer_doc[] =
    "last_transfer()\n"
    "--\n\n"
    "(bytes in, bytes out, of both without a stage, seconds, threads, steps), or None; see\n"
    "smemkern.last_transfer.\n";

static const char moment_doc[] = "moment(ordinal, stream, /)\n--\n\n"
                                 "What has been queued on a GPU's stream by now.";
static const char moment_has_passed_doc[] = "moment_has_passed(moment, /)\n--\n\n"
                                            "Whether all of it has ended.";
static const char moment_before_doc[] =
    "moment_before(moment, stream, /)\n--\n\n"
    "A stream of the same GPU waits for it; None: the default stream.";
static const char trim_doc[] =
    "trim(device, /)\n"
    "--\n\n"
    "Gives back what is held for later calls; see smemkern.empty_cache.\n";

static const char configure_doc[] = "configure(images, kernels)\n"
                                    "--\n\n"
                                    "Where compiled kernels and their sources are.\n";

#endif
