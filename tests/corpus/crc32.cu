// CRC-32 of messages, one per thread, by a table that each block builds in shared memory.
__global__ void crc32(const unsigned char *messages, int length, unsigned *crcs, int n) {
    __shared__ unsigned table[256];
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) {
        unsigned c = i;
        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? 0xEDB88320 ^ c >> 1 : c >> 1;
        table[i] = c;
    }
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned crc = ~0u;
    for (int k = 0; k < length; k++)
        crc = table[(crc ^ messages[i * length + k]) & 255] ^ crc >> 8;
    crcs[i] = ~crc;
}
