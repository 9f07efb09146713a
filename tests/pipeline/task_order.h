/* Checks planned pipelines for races. */
#ifndef TASK_ORDER_H
#define TASK_ORDER_H

#include "../../csrc/pipeline/plan/plan.h"

/* Aborts with a message if two tasks access the same bytes of device memory, one of them writes,
 * and they are not ordered. For products and transposes without a batch. */
void task_order_check(const smk_pipeline_plan *plan, const smk_variant *variant, int itemsize);

#endif
