/* Parses device= and stream=, and runs jobs and pipelines without the GIL. */
#include <time.h>

#include "call.h"
#include "detached.h"

#include "../cuda/gpu.h"
#include "../emu/emu.h"
#include "../pipeline/pipeline.h"
#include "result_memory.h"

const char *text_of(PyObject *given) {
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(given, &size);
    if (text && strlen(text) != (size_t)size) {
        PyErr_Format(PyExc_ValueError, "embedded null character in %R", given);
        return NULL;
    }
    return text;
}

int device_read(const module_state *state, PyObject *given, device *out) {
    (void)state;
    *out = (device){.emulated = true};
    if (given == Py_None) {
        out->emulated = out->by_default = gpu_count(NULL) == 0;
        return 0;
    }
    if (!PyUnicode_Check(given)) {
        PyErr_Format(PyExc_TypeError,
                     "device must be None, 'emu', 'cuda' or 'cuda:N', not an object of type %.200s",
                     Py_TYPE(given)->tp_name);
        return -1;
    }
    const char *name = text_of(given);
    if (name == NULL) return -1;
    if (strcmp(name, "emu") == 0) return 0;
    out->emulated = false;
    if (strcmp(name, "cuda") == 0) return 0;
    if (strncmp(name, "cuda:", 5) == 0) {
        size_t digits = strspn(name + 5, "0123456789");
        if (digits > 0 && digits < 9 && name[5 + digits] == '\0') {
            out->ordinal = (int)strtol(name + 5, NULL, 10);
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "device must be None, 'emu', 'cuda' or 'cuda:N', not %R", given);
    return -1;
}

int device_multiprocessors(const module_state *state, const device *on, int *out) {
    smk_status status = {0};
    gpu_info info = {.multiprocessors = EMU_MULTIPROCESSORS};
    if (!on->emulated && gpu_describe(on->ordinal, &info, &status)) {
        raise_status(state, &status);
        return -1;
    }
    *out = info.multiprocessors;
    return 0;
}

int device_sm(const module_state *state, const device *on, int *out) {
    smk_status status = {0};
    gpu_info info = {0};
    if (!on->emulated && gpu_describe(on->ordinal, &info, &status)) {
        raise_status(state, &status);
        return -1;
    }
    *out = info.sm;
    return 0;
}

int stream_refuse(void) {
    PyErr_SetString(PyExc_ValueError, "stream belongs to device 'cuda'; device 'emu' has none");
    return -1;
}

int stream_read(PyObject *given, void **out) {
    *out = NULL;
    if (given == Py_None) return 0;
    /* The CUDA stream protocol: (version, address). */
    PyObject *method =
        PyLong_Check(given) ? NULL : PyObject_GetAttrString(given, "__cuda_stream__");
    PyErr_Clear();
    PyObject *pair = method && PyCallable_Check(method) ? PyObject_CallNoArgs(method) : NULL;
    Py_XDECREF(method);
    PyObject *address = PyLong_Check(given) ? given : NULL;
    if (pair && PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) >= 2)
        address = PyTuple_GET_ITEM(pair, 1);
    if (address) {
        *out = PyLong_AsVoidPtr(address);
        if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Format(PyExc_OverflowError, "stream is not the address of a CUDA stream: %R",
                         address);
        }
        *out = *out || PyErr_Occurred() ? *out : GPU_DEFAULT_STREAM; /* libraries write 0 */
    } else if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_TypeError,
                     "stream must be None, the address of a CUDA stream as an int, or an object "
                     "with __cuda_stream__, not %.200s",
                     Py_TYPE(given)->tp_name);
    }
    Py_XDECREF(pair);
    return PyErr_Occurred() ? -1 : 0;
}

/* Writes kernels' output to sys.stdout, which a notebook or a test may have replaced. */
static int show_printed(smk_text *printed) {
    PyObject *out = PySys_GetObject("stdout");
    int result = 0;
    if (printed->size && out && out != Py_None) {
        PyObject *text = PyUnicode_DecodeUTF8(printed->bytes, (Py_ssize_t)printed->size, "replace");
        result = text ? PyFile_WriteObject(text, out, Py_PRINT_RAW) : -1;
        Py_XDECREF(text);
    }
    if (printed->lost && result == 0) {
        result = PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                                  "%zu bytes that kernels printed were dropped: a launch may print "
                                  "16 MiB, and as much as memory has room for",
                                  printed->lost);
    }
    free(printed->bytes);
    return result;
}

/* ---- transfer statistics ---- */

/* Of this thread's last call that transfers blocks. */
static _Thread_local smk_transfer last;
static _Thread_local bool any;

PyObject *device_last_transfer(void) {
    if (!any) Py_RETURN_NONE;
    return Py_BuildValue("nnnnndin", (Py_ssize_t)last.bytes_in, (Py_ssize_t)last.bytes_out,
                         (Py_ssize_t)last.bytes_direct, (Py_ssize_t)last.bytes_staged,
                         (Py_ssize_t)last.bytes_peer, last.seconds, last.threads,
                         (Py_ssize_t)last.steps);
}

/* Resets the statistics, for the next run to fill. They stay 0 if it fails before it begins. */
static smk_transfer *start_transfer(void) {
    last = (smk_transfer){0};
    any = true;
    return &last;
}

PyObject *device_trim(const module_state *state, PyObject *given) {
    device on;
    smk_status status = {0};
    if (device_read(state, given, &on)) return NULL;
    const size_t results = result_memory_trim();
    if (on.emulated) {
        size_t modules;
        Py_BEGIN_ALLOW_THREADS modules = emu_trim(); /* frees up to several hundred MB */
        Py_END_ALLOW_THREADS return PyLong_FromSize_t(results + modules);
    }
    const size_t before = gpu_pool_bytes(on.ordinal) + gpu_stage_bytes(on.ordinal);
    if (gpu_trim(on.ordinal, &status)) return raise_status(state, &status);
    const size_t after = gpu_pool_bytes(on.ordinal) + gpu_stage_bytes(on.ordinal);
    return PyLong_FromSize_t(results + (before > after ? before - after : 0));
}

/* ---- polling: signals, timeout, progress ---- */

enum { NOTICE_SECONDS = 1 };

typedef struct watch {
    detached call;
    double timeout, end;       /* seconds; `end` is a time of time_now */
    double notice;             /* the time from which notice_emulation warns */
    PyObject *progress;        /* called with (done, total); NULL: none */
    _Atomic size_t delivered;  /* pipelines: bytes of the result in host memory */
    _Atomic uint64_t finished; /* the emulator: blocks */
    size_t total;              /* of one or the other */
} watch;

static int report_progress(const watch *w) {
    size_t done = atomic_load(&w->delivered) + (size_t)atomic_load(&w->finished);
    if (done > w->total) done = w->total; /* whole clusters run, of which blocks are selected */
    PyObject *returned =
        PyObject_CallFunction(w->progress, "nn", (Py_ssize_t)done, (Py_ssize_t)w->total);
    Py_XDECREF(returned);
    return returned ? 0 : -1;
}

static double time_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Raises TimeoutError after `end`. */
static int check_timeout(const watch *w) {
    if (time_now() <= w->end) return 0;
    PyObject *seconds = PyFloat_FromDouble(w->timeout);
    PyErr_Format(PyExc_TimeoutError,
                 "the kernel had not finished after %R seconds; no array was written", seconds);
    Py_XDECREF(seconds);
    return -1;
}

/* Warns, once per process, of a call that is slow because there is no GPU. */
static int notice_emulation(const watch *w) {
    static atomic_bool noticed;
    if (time_now() <= w->notice || atomic_exchange(&noticed, true)) return 0;
    smk_status status = {0};
    gpu_count(&status);
    return PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                            "this call runs on the emulator, which is slow: %s", status.message);
}

/* The poll function of devices: called on the thread that runs the call, without the GIL. */
static int poll_watch(void *given) {
    watch *w = given;
    if (!attach_briefly(&w->call)) return 1;
    const int stop = PyErr_CheckSignals() || check_timeout(w) || notice_emulation(w) ||
                     (w->progress && report_progress(w));
    detach_again(&w->call);
    return stop;
}

int device_read_signature(const module_state *state, PyObject *ptx, const char *entry,
                          emu_signature *out) {
    smk_status status = {0};
    watch w = {.end = Py_HUGE_VAL, .notice = Py_HUGE_VAL};
    if (detach(state, &w.call)) return -1;
    const smk_code code = emu_signature_read(PyBytes_AS_STRING(ptx), (size_t)PyBytes_GET_SIZE(ptx),
                                             entry, poll_watch, &w, out, &status);
    attach(&w.call);
    if (code) raise_status(state, &status);
    return code ? -1 : 0;
}

/* The progress function, a new reference; for True our own progress bar, of this unit. NULL with an
 * exception: failure; without one: no progress is reported. */
static PyObject *progress_function(PyObject *progress, const char *unit) {
    if (progress != Py_True) return Py_XNewRef(progress);
    PyObject *module = PyImport_ImportModule("smemkern._device.transfer");
    PyObject *bar = module ? PyObject_CallMethod(module, "_bar", "s", unit) : NULL;
    Py_XDECREF(module);
    return bar;
}

static size_t result_bytes(const smk_pipeline *pipeline) {
    size_t bytes = 0;
    for (size_t i = 0; i < pipeline->n_tasks; i++) {
        const smk_rectangle *r = &pipeline->tasks[i].rectangle;
        bytes += pipeline->tasks[i].kind == SMK_COPY_OUT ? r->width * r->height : 0;
    }
    return bytes;
}

int device_run_pipelines(const module_state *state, const int *ordinals, smk_pipeline *pipelines,
                         int n, PyObject *progress) {
    smk_status status = {0};
    smk_transfer moved[CALL_MAX_DEVICES] = {{0}};
    smk_transfer *sum = start_transfer();
    watch w = {
        .progress = progress_function(progress, "B"), .end = Py_HUGE_VAL, .notice = Py_HUGE_VAL};
    if (PyErr_Occurred()) return -1;
    for (int i = 0; i < n; i++) {
        pipelines[i].poll = poll_watch;
        pipelines[i].poll_arg = &w;
        pipelines[i].transfer = &moved[i];
        pipelines[i].delivered = &w.delivered;
        pipelines[i].n_concurrent = n;
        w.total += result_bytes(&pipelines[i]);
    }
    if (detach(state, &w.call)) {
        Py_XDECREF(w.progress);
        return -1;
    }
    smk_code code = ordinals ? pipeline_run_gpus(ordinals, pipelines, n, &status)
                             : pipeline_run_emu(&pipelines[0], &status);
    attach(&w.call);
    for (int i = 0; i < n; i++) {
        sum->bytes_in += moved[i].bytes_in;
        sum->bytes_out += moved[i].bytes_out;
        sum->bytes_direct += moved[i].bytes_direct;
        sum->bytes_staged += moved[i].bytes_staged;
        sum->bytes_peer += moved[i].bytes_peer;
        sum->seconds = Py_MAX(sum->seconds, moved[i].seconds);
        sum->threads += moved[i].threads;
        sum->steps += moved[i].steps;
    }
    if (code)
        raise_status(state, &status);
    else if (w.progress)
        code = report_progress(&w) ? SMK_ERROR : SMK_OK;
    Py_XDECREF(w.progress);
    return code ? -1 : 0;
}

/* ---- running a job ---- */

static size_t blocks_to_run(const smk_job *job) {
    size_t blocks = job->n_blocks;
    for (size_t i = 0; !job->blocks && i < job->n_launches; i++) {
        const uint32_t *grid = job->launches[i].grid;
        blocks += (size_t)grid[0] * grid[1] * grid[2];
    }
    return blocks;
}

/* Appends to a TimeoutError where the kernel was. */
static void say_where(const smk_status *status) {
    if (!PyErr_ExceptionMatches(PyExc_TimeoutError) || !strstr(status->message, " is at ")) return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_Format(PyExc_TimeoutError, "%S; %s", value, status->message);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

int device_run(const module_state *state, const device *on, smk_job *job, PyObject *progress,
               double timeout) {
    smk_status status = {0};
    watch w = {.progress = on->emulated ? progress_function(progress, " blocks") : NULL,
               .total = blocks_to_run(job),
               .timeout = timeout,
               .end = time_now() + timeout,
               .notice = on->by_default ? time_now() + NOTICE_SECONDS : Py_HUGE_VAL};
    if (PyErr_Occurred()) return -1;
    job->poll = poll_watch;
    job->poll_arg = &w;
    job->finished = w.progress ? &w.finished : NULL;
    job->transfer = on->emulated ? NULL : start_transfer();
    smk_text printed = {0};
    job->printed = &printed;
    if (detach(state, &w.call)) {
        Py_XDECREF(w.progress);
        return -1;
    }
    job->cancel = w.call.cancel;
    smk_code code =
        on->emulated ? emu_run(job, &status) : pipeline_run_job(on->ordinal, job, &status);
    attach(&w.call);
    const bool reported = code || !w.progress || report_progress(&w) == 0;
    Py_XDECREF(w.progress);
    if (!reported) {
        free(printed.bytes);
        return -1;
    }
    if (code == SMK_OK && job->recording) { /* it runs again and again */
        free(printed.bytes);
        return 0;
    }
    if (code == SMK_OK) return show_printed(&printed);
    /* The run's failure, or the exception of a signal handler, matters more than an error of
     * stdout. */
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (show_printed(&printed)) PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    raise_status(state, &status);
    if (status.code == SMK_INTERRUPTED) say_where(&status);
    return -1;
}
