/* CUDA's device runtime: kernels that launch kernels, and streams, copies and conditions of theirs.
 *
 * Nothing of it runs within the launch. What its kernel asks for is added to the job's list of
 * children, and whoever runs the job runs them when the launch has ended. Streams and events of
 * kernels therefore need no more than handles: children run in the order of the list. */
#ifndef EMU_DEVICE_RUNTIME_H
#define EMU_DEVICE_RUNTIME_H

#include "provided.h"

struct launch;

/* NULL: it is none of the device runtime. */
const provided_function *device_runtime_find(const char *name);
/* Whether the module's kernels may call it. */
bool device_runtime_needs_heap(const ptx_module *module);
/* The launch has ended: its children are sorted by the block that asked for them. */
void device_runtime_end_launch(struct launch *l, size_t first);

#endif
