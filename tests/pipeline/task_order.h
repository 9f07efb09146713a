/* Whether a planned flow could race. */
#ifndef FLOW_ORDER_H
#define FLOW_ORDER_H

#include "../../csrc/core/plan_flow.h"

/* Ends the process with a message if two steps have to do with the same bytes of the device's memory, one of them writes
 * there, and neither is sure to have ended when the other begins. Of a product or a transpose without a batch. */
void flow_order_check(const smk_flow_plan *plan, const smk_row *row, int itemsize);

#endif
