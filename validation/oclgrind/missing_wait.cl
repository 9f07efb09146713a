// mistakes/missing_wait.cu in OpenCL C: async_work_group_copy in the place of cp.async.
kernel void missing_wait(global const float *x, global float *y) {
    local float tile[64];
    const int t = get_local_id(0), first = 64 * get_group_id(0);
    async_work_group_copy(tile, x + first, 64, 0);
    barrier(CLK_LOCAL_MEM_FENCE);
    y[first + t] = tile[63 - t];
}
