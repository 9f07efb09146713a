// Random numbers by Philox 4x32-10: the same for the same key and counter on every machine.
__global__ void philox(uint4 *out, unsigned key0, unsigned key1, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 c = {(unsigned)i, 0, 0, 0};
    for (int round = 0; round < 10; round++) {
        unsigned high0 = __umulhi(0xD2511F53, c.x), low0 = 0xD2511F53 * c.x;
        unsigned high1 = __umulhi(0xCD9E8D57, c.z), low1 = 0xCD9E8D57 * c.z;
        c = {high1 ^ c.y ^ key0, low1, high0 ^ c.w ^ key1, low0};
        key0 += 0x9E3779B9;
        key1 += 0xBB67AE85;
    }
    out[i] = c;
}
