/* Whether a planned flow could race. */
#ifndef TASK_ORDER_H
#define TASK_ORDER_H

#include "../../csrc/pipeline/plan/plan.h"

/* Ends the process with a message if two steps have to do with the same bytes of the device's memory, one of them writes
 * there, and neither is sure to have ended when the other begins. Of a product or a transpose without a batch. */
void task_order_check(const smk_pipeline_plan *plan, const smk_row *row, int itemsize);

#endif
