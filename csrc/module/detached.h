/* Calls that run without the GIL, and how they are stopped when the interpreter exits.
 *
 * At exit Python ends a daemon thread when it next takes the GIL (3.14: hangs it there), whatever
 * is on its stack. The stack may hold a launch of the emulator that other threads still work on. So
 * an atexit hook, which runs before Python begins to end threads, cancels all such calls and waits
 * for them; new calls raise.
 *
 * A thread whose call was cancelled does not take the GIL again until the interpreter ends: it has
 * nothing more to do, and if it printed a traceback, Python could end it while it holds the lock of
 * stderr. If the interpreter does not end within a second, because another thread joins this one,
 * the call raises.
 */
#ifndef SMK_DETACHED_H
#define SMK_DETACHED_H

#include "module.h"

typedef struct detached {
    struct calls *calls;
    PyThreadState *thread;
    const atomic_bool *cancel; /* true: the call must stop; NULL: it is never cancelled */
} detached;

/* Creates and frees a module's call counter; detached_start also registers the atexit hook. */
int detached_start(PyObject *module, module_state *state);
void detached_free(struct calls *calls);

/* Releases the GIL; -1 with a RuntimeError if the interpreter is ending. */
int detach(const module_state *state, detached *out);

/* Takes the GIL again, at the end of the call. */
void attach(detached *d);

/* Takes the GIL during the call, to run Python code, until detach_again. False: the call must stop,
 * and the GIL is not taken. */
bool attach_briefly(detached *d);
void detach_again(detached *d);

#endif
