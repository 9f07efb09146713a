// Places of a word in a text, found anywhere by threads that each try one start.
__global__ void string_search(const char *text, int n, const char *word, int m, int *places,
                              unsigned *count, unsigned most) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + m > n) return;
    int k = 0;
    while (k < m && text[i + k] == word[k])
        k++;
    if (k < m) return;
    unsigned place = atomicAdd(count, 1u);
    if (place < most) places[place] = i;
}
