/* Words for one request to shared memory: see explain.h. The counts are those of banks.h. */
#include "explain.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "banks.h"
#include "words.h"

enum { LANES = 32, WORD = 4, ROW = 128, MAX_NAME = 60 };

/* ---- operations ---- */

typedef struct wording {
    const char *head;    /* of the request: lanes, and bytes per lane */
    const char *head_of; /* the preposition of the array */
    const char *noun;    /* of what has an address each, in the plural */
    const char *verb;
    bool serial; /* lanes with the same word take turns, too */
} wording;

static wording wording_of(emu_operation operation) {
    static const char lanes[] = "Lanes", chunks[] = "Chunks";
    switch (operation) {
    case EMU_LOAD:
    case EMU_COPY_ASYNC_READ:
    case EMU_TEXTURE_READ: return (wording){"read", "from", lanes, "read", false};
    case EMU_ATOMIC: return (wording){"update", "in", lanes, "update", true};
    case EMU_STORE: break;
    case EMU_COPY_ASYNC_WRITE:
    case EMU_STORE_ASYNC: return (wording){"write", "to", lanes, "write", true};
    case EMU_LDMATRIX: return (wording){"ldmatrix reads", "from", lanes, "point to", false};
    case EMU_STMATRIX: return (wording){"stmatrix writes", "to", lanes, "point to", false};
    case EMU_BULK_READ: return (wording){"A bulk copy reads", "from", chunks, "are", false};
    case EMU_BULK_WRITE: return (wording){"A bulk copy writes", "to", chunks, "are", false};
    case EMU_MATRIX_READ: return (wording){"A matrix product reads", "from", chunks, "are", false};
    }
    return (wording){"write", "to", lanes, "write", false};
}

bool explain_operation(const char *name, explain_request *out) {
    static const struct {
        const char *name;
        emu_operation operation;
    } known[] = {
        {"load", EMU_LOAD},
        {"store", EMU_STORE},
        {"atomic", EMU_ATOMIC},
        {"copy_async", EMU_COPY_ASYNC_WRITE},
        {"copy_async_write", EMU_COPY_ASYNC_WRITE},
        {"ldmatrix", EMU_LDMATRIX},
        {"stmatrix", EMU_STMATRIX},
        {"store_async", EMU_STORE_ASYNC},
        {"bulk", EMU_BULK_WRITE},
        {"bulk_read", EMU_BULK_READ},
        {"bulk_write", EMU_BULK_WRITE},
        {"matrix", EMU_MATRIX_READ},
        {"matrix_read", EMU_MATRIX_READ},
    };
    static const char remote[] = "remote_";
    out->is_remote = strncmp(name, remote, sizeof remote - 1) == 0;
    if (out->is_remote) name += sizeof remote - 1;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strcmp(name, known[k].name) == 0) {
            out->operation = known[k].operation;
            return true;
        }
    return false;
}

static uint32_t item_bytes(const explain_request *r) {
    return r->width < WORD ? WORD : r->width;
}

/* ---- lists of numbers ---- */

/* Of a long list the first three and the last are shown. */
static bool is_shown(uint32_t k, uint32_t n) {
    return n <= 4 || k < 3 || k == n - 1;
}

static const char *separator(uint32_t k, uint32_t n) {
    if (k == 0) return "";
    if (k < n - 1) return ", ";
    return n > 4 ? ", ... and " : " and ";
}

/* Each number is the first of a range of `span`. */
static void add_numbers(words *w, const uint64_t *values, uint32_t n, uint32_t span) {
    for (uint32_t k = 0; k < n; k++) {
        if (!is_shown(k, n)) continue;
        words_add(w, "%s%" PRIu64, separator(k, n), values[k]);
        if (span > 1) words_add(w, "-%" PRIu64, values[k] + span - 1);
    }
}

/* "words 0 and 32", "bank 3", "banks 0-3" */
static void add_named(words *w, const char *noun, const uint64_t *values, uint32_t n,
                      uint32_t span) {
    words_add(w, "%s%s ", noun, words_s((uint64_t)n * span));
    add_numbers(w, values, n, span);
}

static bool all_equal(const uint64_t *values, uint32_t n) {
    for (uint32_t k = 1; k < n; k++)
        if (values[k] != values[0]) return false;
    return true;
}

/* ---- the busiest bank of a group of lanes ---- */

typedef struct busy_bank {
    uint32_t lanes[LANES], n_lanes; /* that it serves one after the other */
    uint32_t items[LANES], n_items; /* the first lane of each distinct item among these */
    uint32_t bank;                  /* its first bank, if items have several words */
    uint32_t others;                /* banks of the group that are as busy */
    bool shares;                    /* lanes of the group have one item, and share a wavefront */
} busy_bank;

static uint64_t item_of(const explain_request *r, uint32_t lane) {
    return r->address[lane] / item_bytes(r);
}

/* Adds the lane to its bank. False: it shares the wavefront of an earlier lane. */
static bool add_lane(busy_bank *b, const explain_request *r, uint32_t lane, bool serial) {
    bool is_new = true;
    for (uint32_t k = 0; k < b->n_items; k++)
        is_new &= item_of(r, b->items[k]) != item_of(r, lane);
    if (is_new) b->items[b->n_items++] = lane;
    if (is_new || serial) b->lanes[b->n_lanes++] = lane;
    return is_new || serial;
}

static busy_bank find_busiest(const explain_request *r, uint32_t lanes, bool serial) {
    const uint32_t n_banks = ROW / item_bytes(r);
    busy_bank most = {.n_lanes = 0};
    bool shares = false;
    for (uint32_t bank = 0; bank < n_banks; bank++) {
        busy_bank b = {.bank = bank * (item_bytes(r) / WORD)};
        for (uint32_t left = lanes; left; left &= left - 1) {
            const uint32_t lane = (uint32_t)__builtin_ctz(left);
            if (item_of(r, lane) % n_banks == bank) shares |= !add_lane(&b, r, lane, serial);
        }
        if (b.n_lanes > most.n_lanes)
            most = b;
        else
            most.others += b.n_lanes && b.n_lanes == most.n_lanes;
    }
    most.shares = shares;
    return most;
}

/* ---- groups of lanes ---- */

typedef struct groups {
    uint32_t lanes;            /* per group */
    uint32_t n, wavefronts[4]; /* of the groups with active lanes */
    uint32_t total;
    bool shares; /* as busy_bank.shares, in some group */
    busy_bank worst;
} groups;

static groups look_at_groups(const explain_request *r, const wording *how) {
    groups g = {.lanes = how->serial ? ROW / item_bytes(r)
                                     : banks_group_lanes(r->address, r->active, r->width,
                                                         r->operation == EMU_LOAD)};
    for (uint32_t first = 0; first < LANES; first += g.lanes) {
        const uint32_t lanes = r->active & (uint32_t)((1ull << g.lanes) - 1) << first;
        if (!lanes) continue;
        const busy_bank b = find_busiest(r, lanes, how->serial);
        g.wavefronts[g.n++] = b.n_lanes;
        g.total += b.n_lanes;
        g.shares |= b.shares;
        if (b.n_lanes > g.worst.n_lanes) g.worst = b;
    }
    return g;
}

static void add_groups(words *w, const explain_request *r, const groups *g) {
    if (g->n < 2) return;
    words_add(w, " They are served in %u groups of %u", g->n, g->lanes);
    if (r->operation == EMU_LOAD && g->lanes > ROW / item_bytes(r))
        words_add(w, ", as neighbouring lanes have the same address");
    words_add(w, ":");
    for (uint32_t k = 0; k < g->n; k++)
        words_add(w, "%s%u", k ? " + " : " ", g->wavefronts[k]);
    words_add(w, g->total == r->wavefronts ? " wavefronts." : " turns.");
}

/* ---- elements ---- */

/* The elements of these lanes as rows and columns; false: not all are elements of the array. */
static bool read_elements(const explain_request *r, const uint32_t *lanes, uint32_t n,
                          uint64_t *rows, uint64_t *cols) {
    const explain_array *a = r->array;
    if (!a || !a->element) return false;
    for (uint32_t k = 0; k < n; k++) {
        const uint64_t offset = r->address[lanes[k]] - a->at;
        if (r->address[lanes[k]] < a->at || offset >= a->bytes || offset % a->element) return false;
        const uint64_t element = offset / a->element;
        rows[k] = a->cols ? element / a->cols : 0;
        cols[k] = a->cols ? element % a->cols : element;
    }
    return true;
}

/* "rows 0 and 16 of column 0: ", "elements 0 and 32: "; nothing if the array is not known. */
static void add_elements(words *w, const explain_request *r, const uint32_t *lanes, uint32_t n) {
    uint64_t rows[LANES], cols[LANES];
    if (!read_elements(r, lanes, n, rows, cols)) return;
    if (!r->array->cols) {
        add_named(w, "element", cols, n, 1);
    } else if (n > 1 && all_equal(cols, n)) {
        add_named(w, "row", rows, n, 1);
        words_add(w, " of column %" PRIu64, cols[0]);
    } else if (n > 1 && all_equal(rows, n)) {
        add_named(w, "column", cols, n, 1);
        words_add(w, " of row %" PRIu64, rows[0]);
    } else {
        words_add(w, "element%s ", words_s(n));
        for (uint32_t k = 0; k < n; k++)
            if (is_shown(k, n))
                words_add(w, "%s[%" PRIu64 "][%" PRIu64 "]", separator(k, n), rows[k], cols[k]);
    }
    words_add(w, ": ");
}

/* ---- sentences ---- */

static void add_array(words *w, const explain_request *r, const char *preposition) {
    if (!r->array || !r->array->name) return;
    const char *name = r->array->name;
    const size_t length = explain_plain_name(&name);
    words_add(w, " %s %.*s", preposition, (int)(length < MAX_NAME ? length : MAX_NAME), name);
}

static void add_head(words *w, const explain_request *r, const wording *how) {
    const uint32_t n = (uint32_t)__builtin_popcount(r->active);
    const bool matrix = r->operation == EMU_LDMATRIX || r->operation == EMU_STMATRIX;
    const char *bytes = words_s(r->width);
    if (strchr(how->head, ' ')) { /* an instruction is the subject */
        words_add(w, "%s %u %s%s of %u bytes", how->head, n, matrix ? "row" : "chunk", words_s(n),
                  r->width);
    } else if (n == 1) {
        words_add(w, "Lane %d %ss %u byte%s", __builtin_ctz(r->active), how->head, r->width, bytes);
    } else {
        words_add(w, "%u lanes %s %u byte%s each", n, how->head, r->width, bytes);
    }
    add_array(w, r, how->head_of);
    words_add(w, ": %u wavefront%s", r->wavefronts, words_s(r->wavefronts));
    if (r->wavefronts == r->ideal)
        words_add(w, ", which is ideal.");
    else
        words_add(w, " where %u would be ideal.", r->ideal);
}

static void add_words_and_banks(words *w, const explain_request *r, const busy_bank *b) {
    const uint32_t span = item_bytes(r) / WORD;
    uint64_t first[LANES];
    for (uint32_t k = 0; k < b->n_items; k++)
        first[k] = item_of(r, b->items[k]) * span;
    add_named(w, "word", first, b->n_items, span);
    if (b->n_items > 2)
        words_add(w, ", all %u in ", b->n_items);
    else
        words_add(w, b->n_items == 2 ? ", both in " : ", in ");
    add_named(w, "bank", (const uint64_t[]){b->bank}, 1, span);
}

static void add_busiest(words *w, const explain_request *r, const wording *how,
                        const busy_bank *b) {
    uint64_t lanes[LANES];
    for (uint32_t k = 0; k < b->n_lanes; k++)
        lanes[k] = b->lanes[k];
    words_add(w, " %s ", how->noun);
    add_numbers(w, lanes, b->n_lanes, 1);
    words_add(w, " %s ", how->verb);
    add_elements(w, r, b->items, b->n_items);
    add_words_and_banks(w, r, b);
    words_add(w, how->serial ? ", and take turns." : ".");
    const uint32_t span = item_bytes(r) / WORD;
    if (!b->others) return;
    words_add(w, span > 1 ? " %u other run%s of %u banks" : " %u other bank%s", b->others,
              words_s(b->others), span);
    words_add(w, b->others == 1 ? " is as busy." : " are as busy.");
}

/* Costs that are not those of the banks alone. */
static void add_machine(words *w, const explain_request *r, const groups *g) {
    const uint32_t turns = g->total;
    if (r->wavefronts == turns) return;
    if (r->operation == EMU_ATOMIC)
        words_add(w,
                  " In machine code this atomic is more than one access: %u turn%s cost%s %u "
                  "wavefronts.",
                  turns, words_s(turns), turns == 1 ? "s" : "", r->wavefronts);
    else
        words_add(w, " The writes alone would take %u; a cp.async also depends on its source.",
                  turns);
}

size_t explain_conflict(const explain_request *r, char *out, size_t size) {
    words w = words_begin(out, size);
    if (!r->active) return 0;
    const wording how = wording_of(r->operation);
    add_head(&w, r, &how);
    if (r->is_remote || r->operation == EMU_STORE_ASYNC) {
        words_add(&w, " The request goes through the network of the cluster, which takes lines of "
                      "128 bytes in the order of the lanes.");
        return w.length;
    }
    const groups g = look_at_groups(r, &how);
    if (r->operation == EMU_ATOMIC && r->wavefronts < g.total) {
        words_add(&w, " The machine code first combines lanes that have the same word.");
        return w.length;
    }
    add_groups(&w, r, &g);
    if (g.worst.n_lanes > 1)
        add_busiest(&w, r, &how, &g.worst);
    else if (__builtin_popcount(r->active) > 1)
        words_add(&w, " No two words of a group are in one bank.");
    if (g.shares) words_add(&w, " Lanes that have the same word share its wavefront.");
    if (how.serial) add_machine(&w, r, &g);
    return w.length;
}

/* ---- names ---- */

/* Whether what follows a name in a mangled one is nothing, the end of a scope, or a number. */
static bool ends_name(const char *rest, const char *end) {
    if (*rest == '_' && isdigit((unsigned char)rest[1])) rest += 1 + strspn(rest + 1, "0123456789");
    return rest == end || (*rest == 'E' && rest + 1 == end);
}

/* Compilers split arrays whose indices are constants: "tile_$_4_$_3" is tile[4][3]. */
static const char piece_mark[] = "_$_";

static const char *find_pieces(const char *name) {
    const char *found = strstr(name, piece_mark);
    return found ? found : name + strlen(name);
}

size_t explain_plain_name(const char **name) {
    const char *const end = find_pieces(*name);
    const size_t whole = (size_t)(end - *name);
    if (strncmp(*name, "_Z", 2) != 0) return whole;
    for (const char *at = *name; at < end; at++) {
        if (!isdigit((unsigned char)*at)) continue;
        char *text;
        const unsigned long length = strtoul(at, &text, 10);
        if (text > end || !length || length > (size_t)(end - text) ||
            !ends_name(text + length, end))
            continue;
        *name = text;
        return length;
    }
    return whole;
}

/* ---- elements of hazards ---- */

/* Bytes of the type in an instruction's text: 4 of "ld.shared.f32 %f1, [%r1]"; 0: it has none. */
static uint32_t type_bytes(const char *text) {
    for (const char *at = text; at && (at = strchr(at, '.')); at++) {
        const size_t letters = strspn(at + 1, "bfstu");
        char *end;
        if (!letters || letters > 2 || !isdigit((unsigned char)at[1 + letters])) continue;
        const unsigned long bits = strtoul(at + 1 + letters, &end, 10);
        const bool is_word = isalnum((unsigned char)*end) || *end == '_';
        if (!is_word && bits >= 8 && bits <= 128 && !(bits & (bits - 1))) return (uint32_t)bits / 8;
    }
    return 0;
}

static void add_indices(words *w, const explain_array *a, uint64_t element) {
    if (a->cols && a->rows) {
        words_add(w, "[%" PRIu64 "]", element / a->cols / a->rows);
        element %= a->cols * a->rows;
    }
    if (a->cols) {
        words_add(w, "[%" PRIu64 "]", element / a->cols);
        element %= a->cols;
    }
    words_add(w, "[%" PRIu64 "]", element);
}

/* The indices in the name of a piece. Returns whether it is one. */
static bool add_pieces(words *w, const char *at) {
    const bool is_piece = *at;
    while (strncmp(at, piece_mark, sizeof piece_mark - 1) == 0) {
        at += sizeof piece_mark - 1;
        const size_t digits = strspn(at, "0123456789");
        words_add(w, "[%.*s]", (int)digits, at);
        at += digits;
    }
    return is_piece;
}

size_t explain_element(const explain_array *a, int64_t at, uint32_t width, const char *text,
                       char *out, size_t size) {
    words w = words_begin(out, size);
    const char *name = a->name ? a->name : "shared memory";
    const size_t length = explain_plain_name(&name);
    const uint32_t bytes = type_bytes(text);
    uint32_t element = a->element ? a->element : bytes > width ? bytes : width;
    if (!element) element = 1;
    words_add(&w, "%.*s", (int)length, name);
    const bool is_piece = a->name && add_pieces(&w, find_pieces(a->name));
    if (is_piece && at >= 0 && at < element && a->bytes <= element) return w.length;
    if (at >= 0 && (a->element || at % element == 0))
        add_indices(&w, a, (uint64_t)at / element);
    else
        words_add(&w, " + %" PRId64 " bytes", at);
    return w.length;
}
