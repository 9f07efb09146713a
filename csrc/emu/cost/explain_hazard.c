/* Words for a hazard, and for its cure: see explain.h. */
#include <inttypes.h>
#include <string.h>

#include "explain.h"
#include "words.h"

/* ---- places and threads ---- */

static const char *base_name(const char *file) {
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

static void add_place(words *w, const smk_party *p) {
    if (p->file)
        words_add(w, "%s:%d", base_name(p->file), p->line);
    else
        words_add(w, "PTX line %d", p->line);
}

static void add_xyz(words *w, const uint32_t at[3]) {
    words_add(w, "(%u, %u, %u)", at[0], at[1], at[2]);
}

static void add_thread(words *w, const smk_party *p) {
    words_add(w, "block ");
    add_xyz(w, p->block);
    words_add(w, " thread ");
    add_xyz(w, p->thread);
}

static bool is_same_block(const smk_hazard *h) {
    return !memcmp(h->party.block, h->other.block, sizeof h->party.block);
}

static bool is_same_thread(const smk_hazard *h) {
    return is_same_block(h) && !memcmp(h->party.thread, h->other.thread, sizeof h->party.thread);
}

static bool is_same_file(const smk_hazard *h) {
    const char *a = h->party.file, *b = h->other.file;
    return a && b ? !strcmp(base_name(a), base_name(b)) : a == b;
}

static bool is_same_line(const smk_hazard *h) {
    return h->party.line == h->other.line && is_same_file(h);
}

/* ---- sentences ---- */

/* A sentence is a text in which
 *
 *     {here}, {there}   the places of the two operations, the later one first
 *     {own}, {other}    their threads; {other thread}: without the block; {other block}
 *     {where}           the element
 *     {message}         the hazard's own text
 */
static void add_field(words *w, const smk_hazard *h, const char *where, const char *field,
                      size_t length) {
    const struct {
        const char *name;
        const char *text;
        const smk_party *place, *thread;
        const uint32_t *xyz;
    } fields[] = {
        {.name = "here", .place = &h->party},
        {.name = "there", .place = &h->other},
        {.name = "own", .thread = &h->party},
        {.name = "other", .thread = &h->other},
        {.name = "other thread", .xyz = h->other.thread},
        {.name = "other block", .xyz = h->other.block},
        {.name = "where", .text = where},
        {.name = "message", .text = h->message ? h->message : ""},
    };
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
        if (strlen(fields[k].name) != length || strncmp(fields[k].name, field, length) != 0)
            continue;
        if (fields[k].text) words_add(w, "%s", fields[k].text);
        if (fields[k].place) add_place(w, fields[k].place);
        if (fields[k].thread) add_thread(w, fields[k].thread);
        if (fields[k].xyz) add_xyz(w, fields[k].xyz);
        return;
    }
}

static void add_sentence(words *w, const smk_hazard *h, const char *where, const char *text) {
    while (*text) {
        const size_t plain = strcspn(text, "{");
        words_add(w, "%.*s", (int)plain, text);
        text += plain;
        if (!*text) return;
        const size_t length = strcspn(++text, "}");
        add_field(w, h, where, text, length);
        text += length + 1;
    }
}

/* What does not order the two accesses of a race. */
static const char *missing_order(const smk_hazard *h) {
    const bool is_shared = h->space == SMK_SHARED_SPACE;
    if (is_same_thread(h)) return "and nothing orders the two accesses";
    if (!is_same_block(h))
        return is_shared
                   ? "and nothing orders the blocks of the cluster (barrier.cluster, mbarriers)"
                   : "with no release in one block and acquire in the other (of .gpu scope or "
                     "wider)";
    if (h->kind == SMK_HAZARD_WAW && is_same_line(h)) return "and either value may remain";
    return is_shared ? "with no barrier between them"
                     : "with no barrier between them to order the block's accesses";
}

static const char *sentence_of(const smk_hazard *h) {
    const bool is_shared = h->space == SMK_SHARED_SPACE, has_other = h->other.line != 0;
    switch (h->kind) {
    case SMK_HAZARD_RAW:
        return "RAW race, {where}: {here} reads it in {own}, {there} writes it in {other}, ";
    case SMK_HAZARD_WAR:
        return "WAR race, {where}: {here} writes it in {own}, {there} reads it in {other}, ";
    case SMK_HAZARD_WAW:
        return "WAW race, {where}: {here} writes it in {own}, {there} writes it in {other}, ";
    case SMK_HAZARD_CAS_READ:
        return "{here} reads {where} in {own} while an atomic operation of {there} may change it "
               "in {other}; benign, because a compare-and-swap of the reading thread follows and "
               "fails if the value is out of date";
    case SMK_HAZARD_PROXY_INIT:
        return "{here} completes on the mbarrier at {where} in {own}, {there} initialises it in "
               "{other}, and no fence.mbarrier_init or fence.proxy.async follows; benign: libcu++ "
               "and Triton have no such fence either";
    case SMK_HAZARD_INIT_AGAIN:
        return "{here} initialises the mbarrier at {where} in {own}, which {there} has initialised "
               "in {other}, without mbarrier.inval between the two: undefined in PTX";
    case SMK_HAZARD_UNINITIALISED:
        if (has_other)
            return "{here} reads {where} in {own}, which holds a copy of what {there} read in "
                   "{other} and nobody had written";
        return is_shared ? "{here} reads {where} in {own}, which was never written in this block"
                         : "{here} reads {where} in {own}, which was never written";
    case SMK_HAZARD_ASYNC_READ:
        return has_other ? "{here} reads {where} in {own} while the cp.async of {there} in {other} "
                           "is in flight: the copy has not been waited for"
                         : "{here} reads {where} asynchronously for {own}, whose block ends "
                           "without waiting for that read";
    case SMK_HAZARD_ASYNC_WRITE:
        return "{here} writes {where} in {own} while the cp.async of {there} in {other} is in "
               "flight: the copy has not been waited for";
    case SMK_HAZARD_OVERLAP:
        return "{here} accesses {where} in {own} without waiting for an earlier launch of the call "
               "(griddepcontrol.wait), which accesses it too; at least one of the two writes";
    case SMK_HAZARD_SHUFFLE:
    case SMK_HAZARD_SHUFFLE_OUTSIDE: return "{here}: {own} {message}: the value is undefined";
    case SMK_HAZARD_EXITED:
        return "{here} accesses {where} of block {other block} in {own}, and nothing makes that "
               "block wait for it before its last thread exits at {there} (barrier.cluster)";
    case SMK_HAZARD_PROXY:
        return is_shared ? "{here} reads {where} through the async proxy for {own}, {there} writes "
                           "it in {other}, and there is no fence.proxy.async between them"
                         : "{here} reads {where} in {own}, {there} writes it in {other}, through a "
                           "texture or a surface: only the end of the kernel makes the write "
                           "visible to the read";
    case SMK_HAZARD_BARRIER:
        return has_other ? "{here}: {own} waits at a barrier while thread {other thread} waits at "
                           "another one, at {there}"
                         : "{here}: {own} waits at a barrier that thread {other thread} of its "
                           "warp never reaches, because it has exited";
    default: return "{message}"; /* faults */
    }
}

static bool is_race(smk_hazard_kind kind) {
    return kind == SMK_HAZARD_RAW || kind == SMK_HAZARD_WAR || kind == SMK_HAZARD_WAW;
}

size_t explain_hazard(const smk_hazard *h, const char *where, char *out, size_t size) {
    words w = words_begin(out, size);
    if (h->kind == SMK_HAZARD_UNWRITTEN) {
        words_add(&w, "%" PRIu64 " words of the result were never written, the first at %s",
                  h->count, where);
        return w.length;
    }
    const char *text = sentence_of(h);
    add_sentence(&w, h, where, text);
    if (is_race(h->kind)) words_add(&w, "%s", missing_order(h));
    const bool is_fault = !strcmp(text, "{message}");
    if (h->count > 1 && !is_fault) words_add(&w, "; %" PRIu64 " times in total", h->count);
    return w.length;
}

/* ---- cures ---- */

/* Where a barrier of these threads orders the two accesses. `{other}` ran before `{here}` in the
 * program since the last barrier (hazards/granule.c), also if its line is a later one. */
static const char *barrier_place(const smk_hazard *h) {
    if (is_same_line(h) && h->kind == SMK_HAZARD_WAR)
        return "between the read and the write of {here}: read into a variable, wait, then write";
    if (is_same_line(h) && h->other.ptx_line < h->party.ptx_line)
        return "between the write of {here} and the read that follows it, on the line or in the "
               "next iteration of a loop";
    if (is_same_line(h))
        return "between {there} and its next execution, such as at the end of the loop";
    if (is_same_file(h) && h->other.line > h->party.line)
        return "after {there}, before the loop comes back to {here}";
    return "between {there} and {here}";
}

static const char *race_cure(const smk_hazard *h) {
    if (h->kind == SMK_HAZARD_WAW && is_same_line(h))
        return "let one thread write the element, or update it by an atomic operation";
    if (is_same_thread(h)) return "wait for the asynchronous operation of {there} before {here}";
    if (!is_same_block(h) && h->space == SMK_SHARED_SPACE)
        return "a cluster.sync() that all threads of the cluster reach, ";
    if (!is_same_block(h))
        return "two launches, a grid.sync() of a cooperative launch, or a flag that {there} "
               "releases and {here} acquires (cuda::atomic_ref); if both add up, an atomic";
    return "a __syncthreads() that all threads of the block reach, ";
}

static const char *cure_of(const smk_hazard *h) {
    const bool is_bulk = h->other.text && strstr(h->other.text, "bulk");
    switch (h->kind) {
    case SMK_HAZARD_UNINITIALISED:
        if (h->other.line) return "write the element that {there} reads, or do not use its copy";
        return "write the element before {here}, by a thread that a barrier orders before it; "
               "look at the bounds of the loop that fills the array";
    case SMK_HAZARD_ASYNC_READ:
    case SMK_HAZARD_ASYNC_WRITE:
        if (!h->other.line) return "wait for the bulk group at the end (cp.async.bulk.wait_group)";
        return is_bulk ? "wait for the copy of {there} before {here}: for a load at its mbarrier, "
                         "for a store by cp.async.bulk.wait_group"
                       : "between {there} and {here}, a wait by the copying thread "
                         "(__pipeline_wait_prior, cp.async.wait_group), then a __syncthreads()";
    case SMK_HAZARD_OVERLAP: return "cudaGridDependencySynchronize() before {here}";
    case SMK_HAZARD_PROXY:
        return h->space == SMK_SHARED_SPACE
                   ? "a fence.proxy.async by the writing thread after {there}, then the barrier"
                   : "two launches: one that writes, and one that reads";
    case SMK_HAZARD_BARRIER:
        return "move the barrier of {here} out of the branch, so that all threads reach it";
    case SMK_HAZARD_OUT_OF_BOUNDS:
        return h->message && strstr(h->message, "no dynamic shared memory was given")
                   ? "give the launch its bytes of dynamic shared memory (--shared-bytes, in "
                     "Python shared_bytes=)"
                   : "compare the index with the size before {here}";
    case SMK_HAZARD_EXITED:
        return "a cluster.sync() that all threads of the cluster reach, after {here} and before "
               "the block's last thread exits at {there}";
    case SMK_HAZARD_SHUFFLE:
        return "a mask of the lanes that run {here}, and a source lane that is one of them";
    default: return NULL;
    }
}

size_t explain_cure(const smk_hazard *h, char *out, size_t size) {
    words w = words_begin(out, size);
    if (!h->party.line) return 0;
    const char *text = is_race(h->kind) ? race_cure(h) : cure_of(h);
    if (!text) return 0;
    add_sentence(&w, h, "", text);
    const size_t length = strlen(text);
    if (is_race(h->kind) && length > 2 && !strcmp(text + length - 2, ", "))
        add_sentence(&w, h, "", barrier_place(h));
    return w.length;
}
