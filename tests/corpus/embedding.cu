// Embedding lookup: rows of a table by 64-bit token numbers, 16 bytes per thread.
__global__ void embedding(const long long *tokens, const uint4 *table, uint4 *out, int width,
                          long long vocabulary) {
    long long token = tokens[blockIdx.x];
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        out[blockIdx.x * width + i] =
            token >= 0 && token < vocabulary ? table[token * width + i] : make_uint4(0, 0, 0, 0);
}
