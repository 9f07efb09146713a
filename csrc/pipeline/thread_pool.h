/* Threads that help calls. They are kept: one that has used the driver takes 0.3 ms to come and go, ten times
 * what waking a sleeping one does. A process that forks has none in the child, where the driver is refused
 * before.
 */
#ifndef SMK_PIPELINE_THREAD_POOL_H
#define SMK_PIPELINE_THREAD_POOL_H

#include <stdbool.h>

typedef struct pool_thread pool_thread;

/* Has an idle thread, or a new one, run this. NULL: there are enough already, or the system gives no more. */
pool_thread *thread_pool_start(void (*run)(void *argument), void *argument);

/* Whether it has, already. */
bool thread_pool_is_done(const pool_thread *h);

/* Takes the work back if no thread has begun it, as where all cores are busy; else waits until it is done. To be
 * called once for each that was started. */
void thread_pool_join(pool_thread *h);

#endif
