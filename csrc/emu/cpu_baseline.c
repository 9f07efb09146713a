/* The files of cpu_template.h as they are. */
#define CPU_SUFFIX _baseline
#include "cpu_template.h"
