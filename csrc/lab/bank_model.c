/* The bank model for any request, with the wavefront that serves each lane. */
#include <string.h>

#include "session.h"

enum { LANES = 32, ROW = 128, LOAD = 0, STORE = 1, ATOMIC = 2, LDMATRIX = 3 };

/* The wavefront of each lane of a group: in each bank, the distinct items in the order of their
 * first lanes take one wavefront after the other; lanes of atomics share none. */
static void serve_group(const uint64_t *address, uint32_t lanes, uint32_t item, bool serial,
                        int first, int32_t *wavefront) {
    const uint64_t banks = ROW / item;
    for (int l = 0; l < LANES; l++) {
        if (!(lanes >> l & 1)) continue;
        int32_t rank = 0;
        for (int before = 0; before < l; before++) {
            if (!(lanes >> before & 1)) continue;
            const uint64_t mine = address[l] / item, other = address[before] / item;
            if (mine == other && !serial) {
                rank = wavefront[before] - first;
                break;
            }
            if (mine % banks == other % banks && wavefront[before] - first >= rank)
                rank = wavefront[before] - first + 1;
        }
        wavefront[l] = first + rank;
    }
}

static void serve_lanes(const uint64_t *address, uint32_t active, uint32_t width, uint32_t group,
                        bool serial, int32_t *wavefront) {
    int next = 0;
    for (uint32_t at = 0; at < LANES; at += group) {
        const uint32_t lanes = active & (uint32_t)((((uint64_t)1 << group) - 1) << at);
        serve_group(address, lanes, width < 4 ? 4 : width, serial, next, wavefront);
        for (int l = 0; l < LANES; l++)
            if (lanes >> l & 1 && wavefront[l] >= next) next = wavefront[l] + 1;
    }
}

int lab_banks(const double address[32], uint32_t active, uint32_t width, int kind,
              int32_t out[LAB_BANKS_NUMBERS]) {
    uint64_t bytes[LANES] = {0};
    session_begin();
    if (!width || width > 16 || width & (width - 1) || kind < LOAD || kind > LDMATRIX)
        return smk_fail(&session.status, SMK_VALUE,
                        "a request is of 1, 2, 4, 8 or 16 bytes per lane, not %u", width);
    for (int l = 0; l < LANES; l++) {
        if (!(active >> l & 1)) continue;
        if (!(address[l] >= 0 && address[l] < 0x1p53))
            return smk_fail(&session.status, SMK_VALUE, "lane %d: %g is no address", l, address[l]);
        bytes[l] = (uint64_t)address[l];
    }
    const bool load = kind == LOAD, serial = kind == ATOMIC;
    const uint32_t group = banks_group_lanes(bytes, active, width, load);
    memset(out, 0xff, LAB_BANKS_NUMBERS * sizeof *out);
    serve_lanes(bytes, active, width, group, serial, out + 5);
    out[0] = (int32_t)(serial ? banks_serial_wavefronts(bytes, active, width)
                              : banks_wavefronts(bytes, active, width, load));
    out[1] = (int32_t)banks_ideal(bytes, active, width, load);
    out[2] = (int32_t)group;
    out[3] = (int32_t)sectors_touched(bytes, active, width);
    out[4] = (int32_t)sectors_ideal(bytes, active, width);
    return SMK_OK;
}
