// transpose_padded.cu in OpenCL C: rows in, a barrier, columns out.
#define TILE 8
#define BLOCK_ROWS 4

kernel void transpose_padded(global const float *from, global float *to, int rows, int cols) {
    local float cell[TILE][TILE + 1];
    const int x = get_local_id(0), i0 = get_group_id(1) * TILE, j0 = get_group_id(0) * TILE;
    for (int r = get_local_id(1); r < TILE; r += BLOCK_ROWS) {
        const int i = i0 + r, j = j0 + x;
        if (i < rows && j < cols) cell[r][x] = from[i * cols + j];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = get_local_id(1); r < TILE; r += BLOCK_ROWS) {
        const int i = i0 + x, j = j0 + r;
        if (i < rows && j < cols) to[j * rows + i] = cell[x][r];
    }
}
