// mistakes/out_of_bounds.cu in OpenCL C.
kernel void out_of_bounds(global const float *x, global float *y, int n) {
    const int i = get_global_id(0);
    y[i] = 2 * x[i];
}
