/* libnvrtc, NVIDIA's run-time compiler, opened on first use. Declared here instead of in nvrtc.h,
 * so that the package builds without the toolkit. */
#ifndef SMK_CUDA_NVRTC_LIBRARY_H
#define SMK_CUDA_NVRTC_LIBRARY_H

#include <stddef.h>

#include "../core/status.h"

typedef struct nvrtc_program_st *nvrtcProgram;

typedef enum nvrtcResult { NVRTC_SUCCESS = 0, NVRTC_ERROR_OUT_OF_MEMORY = 1 } nvrtcResult;

/* X(function, result, arguments) */
#define NVRTC_FUNCTIONS(X)                                                                         \
    X(nvrtcVersion, nvrtcResult, (int *major, int *minor))                                         \
    X(nvrtcGetErrorString, const char *, (nvrtcResult result))                                     \
    X(nvrtcCreateProgram, nvrtcResult,                                                             \
      (nvrtcProgram * program, const char *source, const char *name, int n_headers,                \
       const char *const *headers, const char *const *header_names))                               \
    X(nvrtcDestroyProgram, nvrtcResult, (nvrtcProgram * program))                                  \
    X(nvrtcAddNameExpression, nvrtcResult, (nvrtcProgram program, const char *expression))         \
    X(nvrtcGetLoweredName, nvrtcResult,                                                            \
      (nvrtcProgram program, const char *expression, const char **name))                           \
    X(nvrtcCompileProgram, nvrtcResult,                                                            \
      (nvrtcProgram program, int n_options, const char *const *options))                           \
    X(nvrtcGetPTXSize, nvrtcResult, (nvrtcProgram program, size_t *bytes))                         \
    X(nvrtcGetPTX, nvrtcResult, (nvrtcProgram program, char *ptx))                                 \
    X(nvrtcGetProgramLogSize, nvrtcResult, (nvrtcProgram program, size_t *bytes))                  \
    X(nvrtcGetProgramLog, nvrtcResult, (nvrtcProgram program, char *log))

typedef struct nvrtc_library {
#define X(function, result, arguments) result(*function) arguments;
    NVRTC_FUNCTIONS(X)
#undef X
    int version; /* 13000 for 13.0 */
} nvrtc_library;

/* NULL, with the reason in status, if it is not found. Later calls search again. */
const nvrtc_library *nvrtc_open(smk_status *status);

#endif
