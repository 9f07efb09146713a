// Game of life, 32 cells a word: neighbours are counted for all bits at once.
__global__ void life(const unsigned *now, unsigned *next, int words, int rows) {
    int word = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (word >= words) return;
    unsigned ones = 0, twos = 0, fours = 0;
    for (int d = -1; d <= 1; d++) {
        const unsigned *line = now + (row + d + rows) % rows * words;
        unsigned here = line[word], before = line[(word + words - 1) % words];
        unsigned after = line[(word + 1) % words];
        unsigned left = __funnelshift_l(before, here, 1), right = __funnelshift_r(here, after, 1);
        unsigned cells[3] = {left, right, d == 0 ? 0 : here};
        for (unsigned c : cells) {
            unsigned carry = ones & c;
            ones ^= c;
            fours |= twos & carry;
            twos ^= carry;
        }
    }
    next[row * words + word] = twos & ~fours & (ones | now[row * words + word]);
}
