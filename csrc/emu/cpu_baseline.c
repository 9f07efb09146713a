/* The files of cpu_template.h, compiled for the compiler's default target. */
#define CPU_SUFFIX _baseline
#include "cpu_template.h"
