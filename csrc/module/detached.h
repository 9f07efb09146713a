/* Calls that run without the GIL, and what becomes of them when the interpreter ends.
 *
 * At exit Python ends a daemon thread where it next takes the GIL (3.14: hangs it there), whatever lies on its
 * stack. A launch of the emulator lies there, and other threads work on it. So an atexit hook, after which Python
 * begins to end threads, tells all such calls to stop and waits for them; new ones are refused. A thread whose call
 * was stopped stays without the GIL until the interpreter ends: it has nothing more to do, and a traceback
 * that it printed by then could be cut off in the midst of a lock of stderr. If the interpreter does not end within a
 * second, because somebody waits for that thread, the call raises.
 */
#ifndef SMK_DETACHED_H
#define SMK_DETACHED_H

#include "module.h"

typedef struct detached {
    struct calls *calls;
    PyThreadState *thread;
    const atomic_bool *cancel; /* the call has to stop once it is true; NULL: it may go on */
} detached;

/* Of a module: what it knows of its calls, and the hook. */
int detached_start(PyObject *module, module_state *state);
void detached_free(struct calls *calls);

/* Releases the GIL; -1 with a RuntimeError if the interpreter is ending. */
int detach(const module_state *state, detached *out);

/* Takes it again, at the end. */
void attach(detached *d);

/* For a moment, to call Python: false if the call has to stop, and Python must not be called. */
bool attach_briefly(detached *d);
void detach_again(detached *d);

#endif
