/* The system's headers that cpu_template.h needs. They come before a pragma that names a target, which is not for
 * them. */
#ifndef EMU_CPU_SYSTEM_H
#define EMU_CPU_SYSTEM_H

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#endif
