// mistakes/uninitialised.cu in OpenCL C.
kernel void uninitialised(global const float *x, global float *y) {
    local float tile[66];
    const int t = get_local_id(0), i = get_global_id(0);
    tile[t + 1] = x[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    y[i] = tile[t] + tile[t + 1] + tile[t + 2];
}
