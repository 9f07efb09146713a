/* Threads of the host. */
#ifndef EMU_HOST_THREAD_H
#define EMU_HOST_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* How many threads run blocks unless the caller says: what $SMEMKERN_EMU_THREADS says, else as many
 * as the host runs at the same time. At least 1. */
unsigned host_thread_limit(void);

/* Starts a thread that handles none of the process's signals. False: there is none, as always in
 * WebAssembly; the caller does the work itself. */
bool host_thread_start(pthread_t *id, void *(*main)(void *), void *arg);
void host_thread_join(pthread_t id);

#endif
