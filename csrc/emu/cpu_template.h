/* The files that are compiled once per instruction set of the host (base/cpu.h). */
#include "cpu_system.h"

#include "cost/cost_cache_template.h"
#include "hazards/lanes_template.h"
#include "hazards/row_template.h"
#include "isa/alu_template.h"
#include "isa/matrix_template.h"
#include "isa/memory_template.h"
#include "machine/observe_lanes_template.h"
