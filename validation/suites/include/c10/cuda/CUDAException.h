/* The macros of PyTorch that check calls of CUDA, for host code that is compiled and never run. */
#ifndef SUITE_C10_CUDA_EXCEPTION_H
#define SUITE_C10_CUDA_EXCEPTION_H

#define C10_CUDA_CHECK(call)          (void)(call)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() (void)cudaGetLastError()

#endif
