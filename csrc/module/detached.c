/* Calls without the GIL are counted, so that the end of the interpreter can wait for them; detached.h says why. */
#include "detached.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    NAP_MS = 2,
    STOPS_WITHIN_MS =
        5000, /* but for what cannot be stopped: a call of a driver, of NVRTC, of Python */
    ENDS_WITHIN_MS = 1000
};

typedef struct calls {
    atomic_bool closing;
    unsigned long closer; /* the thread that ends the interpreter, which may still call */
    _Atomic uint64_t
        running;            /* in the upper half the process, since a fork leaves threads behind */
    atomic_uint references; /* the module's, and one per call */
} calls;

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL);
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

static bool any_runs(calls *c) {
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

/* Without the GIL. Python must not get hold of a thread that it would end. */
static void await_end(void) {
    for (int ms = 0; ms < ENDS_WITHIN_MS; ms += NAP_MS) {
        while (is_finalizing()) {
            pause();
        }
        nap();
    }
}

static bool is_closing(const calls *c) {
    return atomic_load(&c->closing) && c->closer != PyThread_get_thread_ident();
}

int detach(const module_state *state, detached *out) {
    calls *c = state->calls;
    count(c, 1);
    atomic_fetch_add(&c->references, 1);
    *out = (detached){.calls = c, .cancel = &c->closing};
    const bool closing = is_closing(c);
    if (atomic_load(&c->closing) && !closing) {
        out->cancel = NULL;
    }
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
    if (d->cancel && atomic_load(d->cancel)) {
        await_end();
    }
    PyEval_RestoreThread(d->thread);
    detached_free(d->calls);
}

bool attach_briefly(detached *d) {
    if (d->cancel && atomic_load(d->cancel)) {
        return false;
    }
    PyEval_RestoreThread(d->thread);
    return true;
}

void detach_again(detached *d) {
    d->thread = PyEval_SaveThread();
}

void detached_free(calls *c) {
    if (c && atomic_fetch_sub(&c->references, 1) == 1) {
        free(c);
    }
}

/* ---- the end ---- */

static PyObject *close_calls(PyObject *module, PyObject *Py_UNUSED(none)) {
    const module_state *state = PyModule_GetState(module);
    calls *c = state->calls;
    c->closer = PyThread_get_thread_ident();
    atomic_store(&c->closing, true);
    if (!any_runs(c)) {
        Py_RETURN_NONE; /* in the end of a sub-interpreter that comes late, taking the GIL again would end this thread */
    }
    Py_BEGIN_ALLOW_THREADS;
    for (int ms = 0; any_runs(c) && ms < STOPS_WITHIN_MS; ms += NAP_MS) {
        nap();
    }
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
