/* NVIDIA's own calculator on arrays, for test_occupancy.py: it is compiled there against the
 * cuda_occupancy.h of whatever toolkit is installed. */
#include <cuda_occupancy.h>

/* blocks[i], limits[i][5] of n kernels; status 0, or what the header said of kernel *bad. */
int reference(int n, const int *major, const int *minor, const int *threads_per_sm,
              const long *shared_per_sm, const long *shared_optin, const long *shared_reserved,
              const int *threads, const int *registers, const long *dynamic, const long *fixed,
              const int *carveout, const int *barriers, int opt_in, int *blocks, int (*limits)[5],
              long *allocated, int *bad) {
    for (int i = 0; i < n; i++) {
        cudaOccDeviceProp device = {0};
        device.computeMajor = major[i];
        device.computeMinor = minor[i];
        device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = threads_per_sm[i];
        device.regsPerBlock = 65536;
        device.regsPerMultiprocessor = 65536;
        device.warpSize = 32;
        device.sharedMemPerBlock = 48 * 1024;
        device.sharedMemPerMultiprocessor = (size_t)shared_per_sm[i];
        device.numSms = 1;
        device.sharedMemPerBlockOptin = (size_t)shared_optin[i];
        device.reservedSharedMemPerBlock = (size_t)shared_reserved[i];
        cudaOccFuncAttributes kernel = {0};
        kernel.maxThreadsPerBlock = 1024;
        kernel.numRegs = registers[i];
        kernel.sharedSizeBytes = (size_t)fixed[i];
        kernel.shmemLimitConfig = opt_in ? FUNC_SHMEM_LIMIT_OPTIN : FUNC_SHMEM_LIMIT_DEFAULT;
        kernel.maxDynamicSharedSizeBytes = (size_t)dynamic[i];
        kernel.numBlockBarriers = barriers[i];
        cudaOccDeviceState state = {0};
        state.carveoutConfig = carveout[i];
        cudaOccResult result;
        cudaOccError status = cudaOccMaxActiveBlocksPerMultiprocessor(
            &result, &device, &kernel, &state, threads[i], (size_t)dynamic[i]);
        if (status != CUDA_OCC_SUCCESS) {
            *bad = i;
            return (int)status;
        }
        blocks[i] = result.activeBlocksPerMultiprocessor;
        allocated[i] = (long)result.allocatedSharedMemPerBlock;
        limits[i][0] = result.blockLimitRegs;
        limits[i][1] = result.blockLimitSharedMem;
        limits[i][2] = result.blockLimitWarps;
        limits[i][3] = result.blockLimitBlocks;
        limits[i][4] = result.blockLimitBarriers;
    }
    return 0;
}
