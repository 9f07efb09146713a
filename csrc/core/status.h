/* How anything below module/ says what went wrong: a code and a sentence.
 *
 * Core C never raises, prints, exits or asserts on a user's input; it fills a status and returns its
 * code. Only module/ turns a status into a Python exception, by the map below.
 */
#ifndef SMK_STATUS_H
#define SMK_STATUS_H

/* X(code, the Python exception that module/ raises for it) */
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
    char message[4000]; /* what was given, what was wanted, what to do; room for a compiler's log */
} smk_status;

/* Records the failure and returns the code, so that a caller writes `return smk_fail(...)`. The
 * first failure is kept: a later one, on the way out, is a consequence. */
smk_code smk_fail(smk_status *status, smk_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The usual one: "out of memory: N bytes for WHAT". */
smk_code smk_fail_memory(smk_status *status, unsigned long long bytes, const char *what);

#endif
