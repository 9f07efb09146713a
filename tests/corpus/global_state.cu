// Variables of the module that keep their values from launch to launch.
__device__ int calls = 0;
__device__ float history[8] = {-1, -1, -1, -1, -1, -1, -1, -1};

__global__ void global_state(float value, int *n_calls, float *seen) {
    __shared__ int call;
    if (threadIdx.x == 0) {
        call = calls++;
        history[call % 8] = value;
    }
    __syncthreads();
    if (threadIdx.x < 8) seen[threadIdx.x] = history[threadIdx.x];
    *n_calls = call + 1;
}
