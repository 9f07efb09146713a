/* The system headers that cpu_template.h needs.
 *
 * cpu_v3.c and cpu_v4.c include them before their target pragma, which must not apply to them. */
#ifndef EMU_CPU_SYSTEM_H
#define EMU_CPU_SYSTEM_H

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#endif
