/* Fills a status. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>

smk_code smk_fail(smk_status *status, smk_code code, const char *format, ...) {
    if (status == NULL) return code;
    if (status->code != SMK_OK) return status->code;
    status->code = code;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(status->message, sizeof status->message, format, arguments);
    va_end(arguments);
    return code;
}

smk_code smk_fail_memory(smk_status *status, unsigned long long bytes, const char *what) {
    return smk_fail(status, SMK_MEMORY, "out of memory: %llu bytes for %s", bytes, what);
}
