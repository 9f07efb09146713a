/* What a driver result means to us: our code, whether the context survives it, and what to do. */
#ifndef SMK_CUDA_ERRORS_H
#define SMK_CUDA_ERRORS_H

#include <stdarg.h>
#include <stdbool.h>

#include "driver.h"

/* "CALL: CUDA_ERROR_X (the driver's text). Remedy." `otherwise` is the code of a result that the
 * table does not name. The driver's functions may be NULL where it could not be asked. */
smk_code driver_fail(const driver *cu, CUresult result, smk_code otherwise, smk_status *status,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));
smk_code driver_vfail(const driver *cu, CUresult result, smk_code otherwise, smk_status *status,
                      const char *format, va_list arguments);

/* After such a result every later use of the context fails as well. */
bool driver_result_is_sticky(CUresult result);

#endif
