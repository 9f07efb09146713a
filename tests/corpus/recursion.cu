// Recursion on each thread's stack: Ackermann's function and the moves of a tower of Hanoi.
__device__ __noinline__ int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

__device__ __noinline__ int hanoi(int discs, int from, int to) {
    if (discs == 0) return 0;
    int via = 3 - from - to;
    return hanoi(discs - 1, from, via) + from + 2 * to + hanoi(discs - 1, via, to);
}

__global__ void recursion(int *ackermanns, int *hanois) {
    int t = threadIdx.x;
    ackermanns[t] = ackermann(t % 3, t % 5);
    hanois[t] = hanoi(t % 7, 0, 2);
}
