/* Error reporting for all folders except module/: a code and a message.
 *
 * Code outside module/ never raises, prints, exits or asserts on user input. It fills a status and
 * returns the code; module/ turns a status into the Python exception that the map below gives.
 */
#ifndef SMK_STATUS_H
#define SMK_STATUS_H

/* X(code, Python exception) */
#define SMK_CODE_MAP(X)                                                                            \
    X(OK, none)                                                                                    \
    X(TYPE, TypeError)                                                                             \
    X(VALUE, ValueError)                                                                           \
    X(MEMORY, MemoryError)                                                                         \
    X(INTERRUPTED, KeyboardInterrupt)                                                              \
    X(ERROR, Error)                                                                                \
    X(NO_DEVICE, NoDeviceError)                                                                    \
    X(DRIVER_TOO_OLD, DriverTooOldError)                                                           \
    X(KERNEL_IMAGE, KernelImageError)                                                              \
    X(COMPILE, CompileError)                                                                       \
    X(LAUNCH, LaunchError)                                                                         \
    X(UNSUPPORTED, UnsupportedInstructionError)                                                    \
    X(HAZARD, HazardError)

typedef enum smk_code {
#define X(code, exception) SMK_##code,
    SMK_CODE_MAP(X)
#undef X
} smk_code;

typedef struct smk_status {
    smk_code code;
    char message[4000]; /* what was given, what was expected, what to do; fits a compiler's log */
} smk_status;

/* Records the failure and returns its code, for `return smk_fail(...)`. The first failure stays:
 * later ones, during clean-up, are its consequences. */
smk_code smk_fail(smk_status *status, smk_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* SMK_MEMORY: "out of memory: N bytes for WHAT". */
smk_code smk_fail_memory(smk_status *status, unsigned long long bytes, const char *what);

#endif
