/* Errors from driver results: our code, whether the context survives, and what to do. */
#ifndef SMK_CUDA_ERRORS_H
#define SMK_CUDA_ERRORS_H

#include <stdarg.h>
#include <stdbool.h>

#include "driver.h"

/* "CALL: CUDA_ERROR_X (the driver's text). Remedy." `otherwise` is the code for results that are
 * not in the table. `cu` may be NULL, before the driver's functions are loaded. */
smk_code driver_fail(const driver *cu, CUresult result, smk_code otherwise, smk_status *status,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));
smk_code driver_vfail(const driver *cu, CUresult result, smk_code otherwise, smk_status *status,
                      const char *format, va_list arguments);

/* Whether every later use of the context fails as well. */
bool driver_result_is_sticky(CUresult result);

#endif
