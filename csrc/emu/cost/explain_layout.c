/* Words for the layout that makes requests free of conflicts: see explain.h. */
#include "explain.h"

#include <inttypes.h>
#include <stdlib.h>

#include "words.h"

enum { LANES = 32, ROW = 128 };

/* ---- requests as accesses to a tile ---- */

typedef struct tile_accesses {
    bank_tile tile;
    bank_access *accesses;
    int64_t (*at)[2][LANES]; /* rows and columns of each access */
    size_t n;
} tile_accesses;

/* An array of one dimension is taken as rows of 128 bytes. */
static bank_tile tile_of(const explain_array *a) {
    const uint64_t cols = a->cols ? a->cols : ROW / a->element;
    const uint64_t row = cols * a->element;
    return (bank_tile){a->bytes / row + (a->bytes % row != 0), cols, a->element};
}

/* Sets the rows and columns of the lanes. False: some lane does not access whole elements of one
 * row of the array. */
static bool place_lanes(const explain_array *a, const bank_tile *t, const explain_request *r,
                        int64_t row[LANES], int64_t col[LANES]) {
    if (r->is_remote || !r->active || r->width % a->element) return false;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        row[lane] = col[lane] = 0;
        if (!(r->active >> lane & 1)) continue;
        const uint64_t offset = r->address[lane] - a->at, element = offset / a->element;
        if (r->address[lane] < a->at || offset >= a->bytes || offset % a->element) return false;
        row[lane] = (int64_t)(element / t->cols);
        col[lane] = (int64_t)(element % t->cols);
        if (element % t->cols + r->width / a->element > t->cols) return false;
    }
    return true;
}

static bool read_accesses(const explain_array *a, const explain_request *requests, size_t n,
                          tile_accesses *out) {
    *out = (tile_accesses){.tile = tile_of(a), .n = n};
    out->accesses = calloc(n, sizeof *out->accesses);
    out->at = calloc(n, sizeof *out->at);
    if (!out->accesses || !out->at) return false;
    for (size_t k = 0; k < n; k++) {
        const explain_request *r = &requests[k];
        if (!place_lanes(a, &out->tile, r, out->at[k][0], out->at[k][1])) return false;
        out->accesses[k] = (bank_access){.row = out->at[k][0],
                                         .col = out->at[k][1],
                                         .active = r->active,
                                         .width = r->width,
                                         .load = r->operation == EMU_LOAD};
    }
    return true;
}

/* ---- the search ---- */

typedef struct search {
    bank_choice plain, best, best_padded;
    bool has_plain, has_best, has_padded;
} search;

static void keep_better(bank_choice *best, bool *has, const bank_choice *c) {
    if (*has && !choice_is_better(c, best)) return;
    *best = *c;
    *has = true;
}

static search search_layouts(const tile_accesses *t) {
    bank_layout layouts[LAYOUTS_MAX];
    const size_t n = layouts_list(&t->tile, layouts);
    search s = {.has_plain = false};
    for (size_t k = 0; k < n; k++) {
        bank_choice c;
        if (!layout_cost(&t->tile, &layouts[k], t->accesses, t->n, &c)) continue;
        keep_better(&s.best, &s.has_best, &c);
        if (layouts[k].pad) keep_better(&s.best_padded, &s.has_padded, &c);
        if (k == 0) keep_better(&s.plain, &s.has_plain, &c);
    }
    return s;
}

/* ---- sentences ---- */

static void add_bits(words *w, const bank_layout *l) {
    words_add(w, "XOR bit%s %u", words_s(l->bits), l->base);
    if (l->bits > 1) words_add(w, " to %u", l->base + l->bits - 1);
    words_add(w, " of each byte offset with bit%s %u", words_s(l->bits), l->base + l->shift);
    if (l->bits > 1) words_add(w, " to %u", l->base + l->shift + l->bits - 1);
}

static void add_layout(words *w, const bank_tile *t, const bank_layout *l) {
    switch (l->kind) {
    case LAYOUT_PADDED:
        words_add(w, "Pad each row by %u element%s, to %" PRIu64 ".", l->pad, words_s(l->pad),
                  t->cols + l->pad);
        return;
    case LAYOUT_XOR:
        if (l->is_element)
            words_add(w, "Store element c of row r in column c ^ (r %% %u), an XOR swizzle.",
                      l->period);
        else
            words_add(w, "Store %u-byte chunk k of row r as chunk k ^ (r %% %u), an XOR swizzle.",
                      l->chunk, l->period);
        return;
    case LAYOUT_TMA: words_add(w, "Use TMA's swizzle of %u bytes: ", l->span); break;
    case LAYOUT_SWIZZLE: words_add(w, "Use a swizzle: "); break;
    }
    add_bits(w, l);
    words_add(w, ".");
}

static void add_price(words *w, const bank_choice *c) {
    if (c->wasted)
        words_add(w, "%" PRIu64 " byte%s of memory", c->wasted, words_s(c->wasted));
    else
        words_add(w, "no memory");
}

static void add_cost(words *w, const search *s, size_t n) {
    const bank_choice *c = &s->best;
    words_add(w, " It costs ");
    add_price(w, c);
    if (n == 1)
        words_add(w, ", and this request takes");
    else
        words_add(w, ", and these %zu requests take", n);
    words_add(w, " %" PRIu64 " wavefront%s", c->wavefronts, words_s(c->wavefronts));
    if (s->has_plain) words_add(w, " in place of %" PRIu64, s->plain.wavefronts);
    words_add(w,
              c->conflict_free ? ", free of conflicts." : "; no padding or swizzle takes fewer.");
}

static void add_padding(words *w, const search *s) {
    const bank_choice *c = &s->best_padded;
    if (!s->has_padded || s->best.layout.kind == LAYOUT_PADDED) return;
    if (s->has_plain && c->wavefronts >= s->plain.wavefronts) return;
    words_add(w, " Padding each row by %u element%s takes %" PRIu64 " wavefront%s and ",
              c->layout.pad, words_s(c->layout.pad), c->wavefronts, words_s(c->wavefronts));
    add_price(w, c);
    words_add(w, ".");
}

static void add_advice(words *w, const explain_array *a, const bank_tile *t, const search *s,
                       size_t n) {
    if (s->best.layout.kind == LAYOUT_PADDED && !s->best.layout.pad) {
        words_add(w, s->best.conflict_free
                         ? "Its layout is free of conflicts for these accesses."
                         : "No padding and no swizzle takes fewer wavefronts than its layout.");
        return;
    }
    if (!a->cols) words_add(w, "Take it as rows of %" PRIu64 " elements. ", t->cols);
    add_layout(w, t, &s->best.layout);
    add_cost(w, s, n);
    add_padding(w, s);
}

size_t explain_layout(const explain_array *array, const explain_request *requests, size_t n,
                      bank_choice *best, char *out, size_t size) {
    words w = words_begin(out, size);
    if (!n || !array->bytes || !array->element || 16 % array->element || array->cols > array->bytes)
        return 0;
    tile_accesses t;
    if (read_accesses(array, requests, n, &t)) {
        const search s = search_layouts(&t);
        if (s.has_best) add_advice(&w, array, &t.tile, &s, n);
        if (s.has_best && best) *best = s.best;
    }
    free(t.at);
    free(t.accesses);
    return w.length;
}
