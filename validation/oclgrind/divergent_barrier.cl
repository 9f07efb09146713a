// mistakes/divergent_barrier.cu in OpenCL C.
kernel void divergent_barrier(global const float *x, global float *y, int n) {
    local float tile[64];
    const int t = get_local_id(0), i = get_global_id(0);
    if (i < n) {
        tile[t] = x[i];
        barrier(CLK_LOCAL_MEM_FENCE);
        y[i] = tile[t ^ 1];
    }
}
