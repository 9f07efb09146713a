/* Threads that are kept between calls: creating and ending one that has used the driver takes 0.3
 * ms, ten times as long as waking one. After a fork the child has none, and device "cuda" is
 * refused there anyway. */
#ifndef SMK_PIPELINE_THREAD_POOL_H
#define SMK_PIPELINE_THREAD_POOL_H

#include <stdbool.h>

typedef struct pool_thread pool_thread;

/* Runs the function on an idle or a new thread. NULL: the pool or the system is out of threads. */
pool_thread *thread_pool_start(void (*run)(void *argument), void *argument);

bool thread_pool_is_done(const pool_thread *t);

/* Cancels the function if the thread has not begun it (all cores may be busy), else waits for its
 * end. Call it exactly once per successful thread_pool_start. */
void thread_pool_join(pool_thread *t);

#endif
