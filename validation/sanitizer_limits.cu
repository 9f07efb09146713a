/* Textbook kernels for compute-sanitizer (sanitizer_limits.py): small, right, and each with one more means of
 * order than the one before. What a tool reports of a right one it does not follow.
 *
 *      race <mode>    threads hand 16 bytes to another warp's, and again into the same place
 *          store           stores; an mbarrier that all threads arrive at says full, another one empty
 *          store_elected   the same, but a warp's reads are told by its first lane, after __syncwarp
 *          wait_arrive     cp.async, waited for; as store
 *          noinc           cp.async with cp.async.mbarrier.arrive.noinc; as store
 *          noinc_elected   both
 *          primitives      cp.async and cp.async.mbarrier.arrive, by the toolkit's primitives
 *          group           cp.async, cp.async.wait_all, __syncthreads
 *          nothing         cp.async and no wait: wrong
 *      init <mode>    a tile of 32 x 32 floats is filled and brought to memory of cudaMalloc
 *          words           by stores
 *          bulk            by cp.async.bulk
 *          tensor          by cp.async.bulk.tensor
 *          nothing         not at all: wrong
 *          parts           its first 8 of each 16 bytes by stores; cp.async copies these, fills with 0
 *      Each is copied to the host; <mode>_read: copied by another kernel before.
 *      sync <mode>    the warps of a block meet at a named barrier
 *          one             at one place of the code
 *          two             half of them at another
 *          two_red         likewise, by bar.red
 *      mem <mode>     each block of a cluster brings 16 bytes per thread to the other one
 *          stores          by st.shared::cluster
 *          bulk            by cp.async.bulk, from shared memory to shared memory
 *          bulk_own        likewise, but to itself
 *      cluster wait   warps wait at the barrier of a cluster, one after the other has told it
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

enum { THREADS = 128, ROUNDS = 2, SIDE = 32 };

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t e = (call);                                                                    \
        if (e) {                                                                                   \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e));                             \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

__device__ unsigned address(const void *shared) {
    return (unsigned)__cvta_generic_to_shared(shared);
}

__device__ void wait(unsigned barrier, unsigned parity) {
    asm volatile("{\n.reg .pred done;\nAGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra AGAIN;\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

__device__ void arrive(unsigned barrier) {
    asm volatile("{.reg .b64 t; mbarrier.arrive.shared::cta.b64 t, [%0];}" ::"r"(barrier)
                 : "memory");
}

__device__ void start(unsigned barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ void copy(unsigned to, const float4 *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

enum way { STORE, STORE_ELECTED, WAIT_ARRIVE, NOINC, NOINC_ELECTED, GROUP, NOTHING };

/* Threads fill their place, tell a barrier, wait at it, and read their neighbour's; then the places are
 * free, and it begins again. */
template <way HOW> __global__ void hand_over(const float4 *x, float4 *y, int rounds) {
    __shared__ float4 tile[THREADS];
    __shared__ __align__(8) unsigned long long bars[2];
    const unsigned full = address(&bars[0]), empty = address(&bars[1]), t = threadIdx.x;
    const bool elected = HOW == STORE_ELECTED || HOW == NOINC_ELECTED;
    if (t == 0) {
        start(full, THREADS);
        start(empty, elected ? THREADS / 32 : THREADS);
    }
    __syncthreads();
    for (int round = 0; round < rounds; round++) {
        const float4 *from = x + round * THREADS + t;
        if (HOW == STORE || HOW == STORE_ELECTED) {
            tile[t] = *from;
            arrive(full);
        } else {
            copy(address(&tile[t]), from);
            if (HOW == NOINC || HOW == NOINC_ELECTED) {
                asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(full)
                             : "memory");
            } else if (HOW == WAIT_ARRIVE) {
                asm volatile("cp.async.wait_all;" ::: "memory");
                arrive(full);
            } else if (HOW == GROUP) {
                asm volatile("cp.async.wait_all;" ::: "memory");
                __syncthreads();
            }
        }
        if (HOW != GROUP && HOW != NOTHING) wait(full, round % 2);
        y[round * THREADS + t] = tile[(t + 33) % THREADS];
        if (HOW == GROUP || HOW == NOTHING) {
            __syncthreads();
            continue;
        }
        if (elected) {
            __syncwarp();
            if (t % 32 == 0) arrive(empty);
        } else {
            arrive(empty);
        }
        wait(empty, round % 2);
    }
}

/* __pipeline_arrive_on is cp.async.mbarrier.arrive, which counts itself in. */
__global__ void primitives(const float4 *x, float4 *y, int rounds) {
    __shared__ float4 tile[THREADS];
    __shared__ __mbarrier_t full;
    const unsigned t = threadIdx.x;
    if (t == 0) __mbarrier_init(&full, THREADS);
    __syncthreads();
    for (int round = 0; round < rounds; round++) {
        __pipeline_memcpy_async(&tile[t], x + round * THREADS + t, 16);
        __pipeline_arrive_on(&full);
        const __mbarrier_token_t token = __mbarrier_arrive(&full);
        while (!__mbarrier_test_wait(&full, token)) {
        }
        y[round * THREADS + t] = tile[(t + 33) % THREADS];
        __syncthreads();
    }
}

__global__ void store_tensor(const __grid_constant__ CUtensorMap map, float value) {
    __shared__ __align__(128) float tile[SIDE * SIDE];
    for (int i = threadIdx.x; i < SIDE * SIDE; i += blockDim.x)
        tile[i] = value + i;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile(
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
                &map),
            "r"(0), "r"(0), "r"(address(tile))
            : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

__global__ void store_bulk(float *y, float value) {
    __shared__ __align__(128) float tile[SIDE * SIDE];
    for (int i = threadIdx.x; i < SIDE * SIDE; i += blockDim.x)
        tile[i] = value + i;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y),
                     "r"(address(tile)), "r"((unsigned)sizeof tile)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

__global__ void store_words(float *y, float value, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        y[i] = value + i;
}

__global__ void read_words(const float *y, float *z, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        z[i] = y[i];
}

__global__ void store_parts(float *y) {
    for (int i = threadIdx.x; i < SIDE * SIDE; i += blockDim.x)
        if (i % 4 < 2) y[i] = 1 + i;
}

__global__ void read_parts(const float *y, float *z) {
    __shared__ __align__(16) float tile[SIDE * SIDE];
    for (int i = 4 * threadIdx.x; i < SIDE * SIDE; i += 4 * blockDim.x)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16, 8;" ::"r"(address(tile + i)),
                     "l"(y + i)
                     : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int i = threadIdx.x; i < SIDE * SIDE; i += blockDim.x)
        z[i] = tile[i];
}

enum meeting { ONE, TWO, TWO_RED };

__device__ int meet(bool reduces) {
    int all = 1;
    if (reduces)
        asm volatile("{\n.reg .pred p, all;\nsetp.ne.u32 p, %1, 0;\n"
                     "bar.red.and.pred all, 3, %2, p;\nselp.u32 %0, 1, 0, all;\n}"
                     : "=r"(all)
                     : "r"(1), "n"((int)THREADS)
                     : "memory");
    else
        asm volatile("bar.sync 3, %0;" ::"n"((int)THREADS) : "memory");
    return all;
}

/* Each thread reads what one of the other half has stored. */
template <meeting HOW> __global__ void hand_across(int *y) {
    __shared__ int x[THREADS];
    const int t = threadIdx.x;
    int all = 1;
    x[t] = t;
    if (HOW == ONE) {
        meet(false);
    } else if (t < THREADS / 2) {
        all = meet(HOW == TWO_RED);
        asm volatile("// not merged with the other");
    } else {
        all = meet(HOW == TWO_RED);
    }
    y[t] = all * x[t ^ THREADS / 2];
}

static int sync(const char *mode) {
    int *y, host[THREADS];
    CHECK(cudaMalloc(&y, sizeof host));
    if (!strcmp(mode, "one")) hand_across<ONE><<<1, THREADS>>>(y);
    if (!strcmp(mode, "two")) hand_across<TWO><<<1, THREADS>>>(y);
    if (!strcmp(mode, "two_red")) hand_across<TWO_RED><<<1, THREADS>>>(y);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < THREADS; i++)
        wrong += host[i] != (i ^ THREADS / 2);
    return wrong;
}

/* The other block's mbarrier counts the bytes, or the cluster's barrier says that all have stored. */
enum gift { STORES, BULK, BULK_OWN };
template <gift HOW> __global__ void give(int *y) {
    extern __shared__ __align__(128) int4 got[];
    __shared__ __align__(128) int4 own[THREADS];
    __shared__ __align__(8) unsigned long long full;
    const unsigned t = threadIdx.x, bar = address(&full);
    unsigned rank, to, its_bar;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    const unsigned other = rank ^ (HOW != BULK_OWN);
    own[t] = make_int4(t, rank, t, rank);
    if (t == 0) {
        start(bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;\n"
                     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
                     "n"(sizeof own)
                     : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(to)
        : "r"(address(got + (HOW == STORES ? t : 0))), "r"(other));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(its_bar) : "r"(bar), "r"(other));
    if (HOW == STORES) {
        asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %1, %2};" ::"r"(to), "r"(t),
                     "r"(rank)
                     : "memory");
    } else {
        if (t == 0)
            asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                         " [%0], [%1], %2, [%3];" ::"r"(to),
                         "r"(address(own)), "n"(sizeof own), "r"(its_bar)
                         : "memory");
        wait(bar, 0);
    }
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    y[blockIdx.x * THREADS + t] = got[t].x + got[t].y;
}

static int mem(const char *mode) {
    int *y, host[2 * THREADS];
    CHECK(cudaMalloc(&y, sizeof host));
    cudaLaunchAttribute cluster;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {2, 1, 1};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = 2;
    launch.blockDim = THREADS;
    launch.dynamicSmemBytes = THREADS * sizeof(int4);
    launch.attrs = &cluster;
    launch.numAttrs = 1;
    if (!strcmp(mode, "stores")) CHECK(cudaLaunchKernelEx(&launch, give<STORES>, y));
    if (!strcmp(mode, "bulk")) CHECK(cudaLaunchKernelEx(&launch, give<BULK>, y));
    if (!strcmp(mode, "bulk_own")) CHECK(cudaLaunchKernelEx(&launch, give<BULK_OWN>, y));
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < 2 * THREADS; i++)
        wrong += host[i] != i % THREADS + (i / THREADS ^ !!strcmp(mode, "bulk_own"));
    return wrong;
}

/* All warps of a cluster arrive at its barrier. The second waits there only after the first has, and has
 * told it. */
__global__ void __cluster_dims__(2, 1, 1) wait_in_turn(int *y) {
    __shared__ __align__(8) unsigned long long told;
    if (threadIdx.x == 0) {
        start(address(&told), 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    asm volatile("barrier.cluster.arrive;" ::: "memory");
    if (threadIdx.x < 32) {
        asm volatile("barrier.cluster.wait;" ::: "memory");
        if (threadIdx.x == 0) arrive(address(&told));
    } else {
        wait(address(&told), 0);
        asm volatile("barrier.cluster.wait;" ::: "memory");
    }
    y[blockIdx.x * 64 + threadIdx.x] = threadIdx.x;
}

static int cluster(const char *) {
    int *y, host[128];
    CHECK(cudaMalloc(&y, sizeof host));
    wait_in_turn<<<2, 64>>>(y);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < 128; i++)
        wrong += host[i] != i % 64;
    return wrong;
}

static CUtensorMap map_of(float *y) {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                           cudaEnableDefault, &result));
    CUtensorMap map;
    const cuuint64_t extent[] = {SIDE, SIDE}, pitch[] = {SIDE * sizeof(float)};
    const cuuint32_t box[] = {SIDE, SIDE}, step[] = {1, 1};
    CUresult code = ((decltype(&cuTensorMapEncodeTiled))found)(
        &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, y, extent, pitch, box, step,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (code) {
        fprintf(stderr, "cuTensorMapEncodeTiled: %d\n", code);
        exit(2);
    }
    return map;
}

static int race(const char *mode) {
    const int n = ROUNDS * THREADS;
    float4 *x, *y, *host = (float4 *)malloc(n * sizeof *host);
    for (int i = 0; i < n; i++)
        host[i] = make_float4(i, i, i, i);
    CHECK(cudaMalloc(&x, n * sizeof *x));
    CHECK(cudaMalloc(&y, n * sizeof *y));
    CHECK(cudaMemcpy(x, host, n * sizeof *x, cudaMemcpyHostToDevice));
#define MODE(name, kernel)                                                                         \
    if (!strcmp(mode, name)) kernel<<<1, THREADS>>>(x, y, ROUNDS)
    MODE("store", hand_over<STORE>);
    MODE("store_elected", hand_over<STORE_ELECTED>);
    MODE("noinc", hand_over<NOINC>);
    MODE("noinc_elected", hand_over<NOINC_ELECTED>);
    MODE("group", hand_over<GROUP>);
    MODE("nothing", hand_over<NOTHING>);
    MODE("wait_arrive", hand_over<WAIT_ARRIVE>);
    MODE("primitives", primitives);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, y, n * sizeof *y, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += host[i].w != i / THREADS * THREADS + (i % THREADS + 33) % THREADS;
    return wrong;
}

static int init(const char *mode) {
    const int n = SIDE * SIDE;
    const bool parts = !strcmp(mode, "parts");
    float *y, *z, *host = (float *)malloc(n * sizeof *host);
    CHECK(cudaMalloc(&y, n * sizeof *y));
    CHECK(cudaMalloc(&z, n * sizeof *z));
    if (!strncmp(mode, "tensor", 6)) store_tensor<<<1, THREADS>>>(map_of(y), 1);
    if (!strncmp(mode, "bulk", 4)) store_bulk<<<1, THREADS>>>(y, 1);
    if (!strncmp(mode, "words", 5)) store_words<<<1, THREADS>>>(y, 1, n);
    if (strstr(mode, "_read")) {
        read_words<<<1, THREADS>>>(y, z, n);
        y = z;
    }
    if (parts) {
        store_parts<<<1, THREADS>>>(y);
        read_parts<<<1, THREADS>>>(y, z);
        y = z;
    }
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, y, n * sizeof *y, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += host[i] != (parts && i % 4 >= 2 ? 0 : 1 + i);
    return wrong;
}

int main(int count, char **words) {
    if (count != 3) return 2;
    const int wrong = !strcmp(words[1], "race")      ? race(words[2])
                      : !strcmp(words[1], "sync")    ? sync(words[2])
                      : !strcmp(words[1], "mem")     ? mem(words[2])
                      : !strcmp(words[1], "cluster") ? cluster(words[2])
                                                     : init(words[2]);
    printf("WRONG %d\n", wrong);
    return 0;
}
