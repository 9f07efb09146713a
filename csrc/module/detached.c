/* Counts the calls that run without the GIL, so that interpreter exit can stop them and wait; see
 * detached.h. */
#include "detached.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    SLEEP_MS = 2,
    /* Calls of the driver, of NVRTC or of Python cannot be stopped and may take longer. */
    STOP_TIMEOUT_MS = 5000,
    EXIT_TIMEOUT_MS = 1000
};

typedef struct calls {
    atomic_bool closing;
    /* The thread that ends the interpreter; it may still start calls. */
    unsigned long closing_thread;
    /* Low half: the number of running calls. High half: the process id, since the child of a fork
     * does not have the threads of its parent. */
    _Atomic uint64_t running;
    atomic_uint references; /* one of the module, and one per call */
} calls;

static void sleep_briefly(void) {
    nanosleep(&(struct timespec){.tv_nsec = SLEEP_MS * 1000000L}, NULL);
}

static void count(calls *c, int by) {
    const uint64_t none = (uint64_t)getpid() << 32;
    uint64_t before = atomic_load(&c->running), after;
    do {
        const bool known = before >> 32 == none >> 32;
        if (!known && by < 0) return;
        after = (known ? before : none) + (uint64_t)(int64_t)by;
    } while (!atomic_compare_exchange_weak(&c->running, &before, after));
}

static bool any_running(calls *c) {
    const uint64_t running = atomic_load(&c->running);
    return running >> 32 == (uint64_t)getpid() && (uint32_t)running > 0;
}

static bool is_finalizing(void) {
#if PY_VERSION_HEX >= 0x030d0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

/* Called without the GIL. Once the interpreter finalizes, the thread must not take the GIL again,
 * since Python would end it there: it pauses until the process ends. Returns if the interpreter
 * does not finalize within EXIT_TIMEOUT_MS. */
static void wait_for_exit(void) {
    for (int ms = 0; ms < EXIT_TIMEOUT_MS; ms += SLEEP_MS) {
        while (is_finalizing())
            pause();
        sleep_briefly();
    }
}

static bool is_closing(const calls *c) {
    return atomic_load(&c->closing) && c->closing_thread != PyThread_get_thread_ident();
}

int detach(const module_state *state, detached *out) {
    calls *c = state->calls;
    count(c, 1);
    atomic_fetch_add(&c->references, 1);
    *out = (detached){.calls = c, .cancel = &c->closing};
    const bool closing = is_closing(c);
    if (atomic_load(&c->closing) && !closing) out->cancel = NULL;
    out->thread = PyEval_SaveThread();
    if (closing) {
        attach(out);
        PyErr_SetString(PyExc_RuntimeError, "the interpreter is ending: nothing new is run");
        return -1;
    }
    return 0;
}

void attach(detached *d) {
    count(d->calls, -1);
    if (d->cancel && atomic_load(d->cancel)) wait_for_exit();
    PyEval_RestoreThread(d->thread);
    detached_free(d->calls);
}

bool attach_briefly(detached *d) {
    if (d->cancel && atomic_load(d->cancel)) return false;
    PyEval_RestoreThread(d->thread);
    return true;
}

void detach_again(detached *d) {
    d->thread = PyEval_SaveThread();
}

void detached_free(calls *c) {
    if (c && atomic_fetch_sub(&c->references, 1) == 1) free(c);
}

/* ---- interpreter exit ---- */

static PyObject *close_calls(PyObject *module, PyObject *Py_UNUSED(none)) {
    const module_state *state = PyModule_GetState(module);
    calls *c = state->calls;
    c->closing_thread = PyThread_get_thread_ident();
    atomic_store(&c->closing, true);
    if (!any_running(c)) {
        /* Keeps the GIL: late in a sub-interpreter's exit, taking it again would end this
         * thread. */
        Py_RETURN_NONE;
    }
    Py_BEGIN_ALLOW_THREADS;
    for (int ms = 0; any_running(c) && ms < STOP_TIMEOUT_MS; ms += SLEEP_MS)
        sleep_briefly();
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyMethodDef close_method = {"_close", close_calls, METH_NOARGS, NULL};

int detached_start(PyObject *module, module_state *state) {
    state->calls = calloc(1, sizeof *state->calls);
    if (state->calls == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    atomic_store(&state->calls->references, 1);
    PyObject *hooks = PyImport_ImportModule("atexit");
    PyObject *hook = hooks ? PyCFunction_New(&close_method, module) : NULL;
    PyObject *known = hook ? PyObject_CallMethod(hooks, "register", "O", hook) : NULL;
    Py_XDECREF(hooks);
    Py_XDECREF(hook);
    Py_XDECREF(known);
    return known ? 0 : -1;
}
