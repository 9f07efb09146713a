// A small machine for expressions: a loop around a switch that branches through a table.
__global__ void switch_table(const unsigned char *code, int length, const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int stack[8] = {}, depth = 0, at = i % 4;
    for (int k = 0; k < length; k++) {
        int top = depth > 0 ? stack[depth - 1] : 0;
        switch (code[(k + at) % length]) {
        case 0: stack[depth++ & 7] = x[i]; break;
        case 1: stack[depth++ & 7] = i; break;
        case 2: stack[depth++ & 7] = top; break;
        case 3: depth -= depth > 0; break;
        case 4:
            if (depth > 0) stack[depth - 1] = -top;
            break;
        case 5:
            if (depth > 0) stack[depth - 1] = top * 3 + 1;
            break;
        case 6:
            if (depth > 0) stack[depth - 1] = top >> 1;
            break;
        case 7:
            if (depth > 0) stack[depth - 1] = top ^ 0x55;
            break;
        default: at++;
        }
        depth &= 7;
    }
    y[i] = depth > 0 ? stack[depth - 1] : 0;
}
