// Prefix sums and sums of tiles of 8 and 32 threads by cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

__global__ void scan_cooperative(const int *x, int *scanned, int *sums, int *ranks) {
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto eight = cg::tiled_partition<8>(warp);
    int i = block.group_index().x * block.size() + block.thread_rank();
    scanned[i] = cg::inclusive_scan(warp, x[i], cg::plus<int>());
    int sum = cg::reduce(eight, x[i], cg::plus<int>());
    if (eight.thread_rank() == 0) sums[i / 8] = sum;
    block.sync();
    ranks[i] = -1;
    if (x[i] % 2) {
        cg::coalesced_group odd = cg::coalesced_threads();
        ranks[i] = odd.thread_rank() + 100 * odd.size();
    }
}
