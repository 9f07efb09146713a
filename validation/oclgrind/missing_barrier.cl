// mistakes/missing_barrier.cu in OpenCL C.
kernel void missing_barrier(global const float *x, global float *y) {
    local float tile[64];
    const int t = get_local_id(0), first = 64 * get_group_id(0);
    tile[t] = x[first + t];
    y[first + t] = tile[63 - t];
}
