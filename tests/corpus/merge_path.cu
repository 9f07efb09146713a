// Merge of two sorted arrays: each thread finds where its part of the result begins by a binary search.
__global__ void merge_path(const int *a, int n_a, const int *b, int n_b, int *out, int per_thread) {
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * per_thread;
    if (first >= n_a + n_b) return;
    int low = max(0, first - n_b), high = min(first, n_a);
    while (low < high) {
        int middle = (low + high) / 2;
        if (a[middle] <= b[first - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    int i = low, j = first - low;
    for (int k = first; k < first + per_thread && k < n_a + n_b; k++)
        out[k] = j >= n_b || (i < n_a && a[i] <= b[j]) ? a[i++] : b[j++];
}
