/* A request to other blocks is first cut by lines of 128 bytes, as one to global memory is: a pass
 * takes a line from each of four tag banks, in the order of the lanes. Then each pass is served as
 * an access to shared memory: groups of lanes, and in each the distinct items of the busiest bank,
 * where items of different blocks are distinct. Groups never merge.
 *
 * The tag bank is a hash of the address. Its bits follow from loads of random words of up to seven
 * blocks, which an H200 counted: no other pair of masks gives the counts of all. Bits 15 to 23 and
 * above 26 were not measured.
 *
 * Atomics serialise lanes in a bank, and go there and back. cas carries two values, so its groups
 * have half of the lanes.
 */
#include "remote.h"

#include "banks.h"

enum { LANES = 32, LINE = 128, TAG_BANKS = 4 };

static uint32_t parity(uint64_t bits) {
    return (uint32_t)__builtin_parityll(bits);
}

static uint32_t tag_bank(uint64_t address) {
    const uint64_t low = 0x7005a80, high = 0x2006d00;
    return parity(address & low) | parity(address & high) << 1;
}

uint32_t remote_passes(const uint64_t address[LANES], uint32_t active, uint32_t passes[LANES]) {
    uint64_t lines[TAG_BANKS][LANES];
    uint32_t n_lines[TAG_BANKS] = {0}, n = 0;
    for (; active; active &= active - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(active), bank = tag_bank(address[lane]);
        const uint64_t line = address[lane] / LINE;
        uint32_t pass = 0;
        while (pass < n_lines[bank] && lines[bank][pass] != line)
            pass++;
        if (pass == n_lines[bank]) lines[bank][n_lines[bank]++] = line;
        if (pass == n) passes[n++] = 0;
        passes[pass] |= 1u << lane;
    }
    return n;
}

static uint32_t pass_wavefronts(const uint64_t address[LANES], uint32_t lanes, uint32_t width,
                                remote_kind kind) {
    if (kind == REMOTE_READ_OR_WRITE) return banks_wavefronts(address, lanes, width, false);
    if (kind == REMOTE_ATOMIC) return 2 * banks_serial_wavefronts(address, lanes, width);
    const uint32_t group = width > 4 ? 8 : 16;
    uint32_t total = 0;
    for (uint32_t first = 0; first < LANES; first += group)
        total += banks_serial_wavefronts(address, lanes & ((1u << group) - 1) << first, width);
    return 2 * total;
}

uint32_t remote_wavefronts(const uint64_t address[LANES], uint32_t active, uint32_t width,
                           remote_kind kind) {
    uint32_t passes[LANES], total = 0;
    const uint32_t n = remote_passes(address, active, passes);
    for (uint32_t pass = 0; pass < n; pass++)
        total += pass_wavefronts(address, passes[pass], width, kind);
    return total;
}
