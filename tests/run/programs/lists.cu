// More managed and pinned allocations than there are regions: a list whose nodes are allocated one
// by one, by host and kernel at the same addresses; some are freed and allocated again.
#include <cstdio>
#include <cstdlib>
struct Node {
    int value;
    Node *next;
};
__global__ void walk(Node *n, long long *sum) {
    for (; n; n = n->next)
        *sum += n->value++;
}
__global__ void race(Node *n) {
    n->value = threadIdx.x;
}
int main(int words, char **word) {
    const int n = words > 1 ? atoi(word[1]) : 500;
    int bad = 0;
    Node *first = nullptr, *all[5000];
    long long *sum, wanted = 0;
    cudaMallocHost(&sum, 8);
    *sum = 0;
    for (int k = 0; k < n; k++) {
        bad += k % 2 ? cudaMallocManaged(&all[k], sizeof(Node))
                     : cudaMallocHost(&all[k], sizeof(Node));
        *all[k] = {k, first};
        first = all[k];
        wanted += k;
    }
    walk<<<1, 1>>>(first, sum);
    bad += cudaDeviceSynchronize();
    bad += *sum != wanted;
    for (int k = 0; k < n; k++) {
        bad += all[k]->value != k + 1;
        bad += k % 2 ? cudaFree(all[k]) : cudaFreeHost(all[k]);
    }
    Node *more[200];
    for (Node *&one : more) {
        bad += cudaMallocManaged(&one, sizeof(Node));
        bad += one->value != 0;
        one->value = 7;
    }
    race<<<1, 33>>>(more[199]);
    bad += cudaDeviceSynchronize();
    bad += cudaFree(more[199]);
    bad += cudaFree(more[199]) != cudaErrorInvalidValue; // once more
    cudaGetLastError();
    for (int k = 0; k < 199; k++) {
        bad += more[k]->value != 7;
        bad += cudaFree(more[k]);
    }
    cudaFreeHost(sum);
    printf("%s\n", bad ? "FAIL" : "PASS");
    return bad;
}
