// A spin lock that threads of one warp take in turn: lanes that have it must go on while others spin.
__global__ void spin_lock(int *lock, volatile int *account, int rounds) {
    for (int i = 0; i < rounds; i++) {
        bool done = false;
        while (!done)
            if (atomicCAS(lock, 0, 1) == 0) {
                __threadfence();
                account[0] = account[0] + 1;
                account[1] = 3 * account[0];
                __threadfence();
                atomicExch(lock, 0);
                done = true;
            }
    }
}
