/* The records of a run: lines of JSON in the file SMEMKERN_RUN_FILE, each written at once, so that
 * a program that crashes leaves all that came before. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"

enum { MAX_MISUSES = 1000, MAX_LEAKS = 200 };

static struct {
    int file; /* -1: no record is wanted */
    pid_t process;
    int check;
    uint64_t limit;
    uint64_t sample, seed; /* sample 0: all blocks */
    bool has_pattern;
    regex_t pattern;
    unsigned misuses, leaks;
} report = {.file = -1};

/* ---- frames ---- */

static const frames *on_behalf;

void report_on_behalf(const frames *callers) {
    on_behalf = callers;
}

frames report_frames(void) {
    frames f = {0};
    if (on_behalf) return *on_behalf;
    if (report.file >= 0) f.n = backtrace(f.at, MAX_FRAMES);
    return f;
}

/* Each frame outside of this library: [object, offset in it, symbol]. */
static void write_frames(json *j, const frames *f) {
    Dl_info own = {0}, at;
    dladdr((void *)report_start, &own);
    json_open(j, NULL, '[');
    for (int k = 0; k < f->n; k++) {
        if (!dladdr(f->at[k], &at) || at.dli_fbase == own.dli_fbase) continue;
        json_open(j, NULL, '[');
        json_text(j, NULL, at.dli_fname);
        json_unsigned(j, NULL, (uint64_t)((uintptr_t)f->at[k] - (uintptr_t)at.dli_fbase));
        json_text(j, NULL, at.dli_sname);
        json_close(j, ']');
    }
    json_close(j, ']');
}

/* Loops launch from one line, and dladdr searches all symbols of an object. */
void report_frames_json(json *j, const frames *f) {
    static frames last;
    static json text;
    const size_t bytes = (size_t)f->n * sizeof *f->at;
    if (!text.n || f->n != last.n || memcmp(f->at, last.at, bytes)) {
        json_clear(&text);
        write_frames(&text, f);
        last = *f;
    }
    if (text.out_of_memory) {
        j->out_of_memory = true;
        json_clear(&text);
        return;
    }
    json_next(j, NULL);
    json_raw(j, text.text);
}

/* ---- start and end ---- */

static int named_number(const char *name, int fallback) {
    const char *text = getenv(name);
    return text && *text ? atoi(text) : fallback;
}

void report_start(void) {
    const char *name = getenv("SMEMKERN_RUN_FILE"), *pattern = getenv("SMEMKERN_RUN_KERNEL");
    report.check = named_number("SMEMKERN_RUN_CHECK", CHECK_HAZARDS);
    report.limit = (uint64_t)named_number("SMEMKERN_RUN_LAUNCHES", 0);
    report.sample = (uint64_t)named_number("SMEMKERN_RUN_SAMPLE", 0);
    report.seed = (uint64_t)named_number("SMEMKERN_RUN_SEED", 0);
    report.has_pattern =
        pattern && *pattern && !regcomp(&report.pattern, pattern, REG_EXTENDED | REG_NOSUB);
    report.process = getpid();
    if (!name || !*name) return;
    report.file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    json j = {0};
    json_open(&j, NULL, '{');
    json_text(&j, "record", "start");
    json_number(&j, "process", report.process);
    json_text(&j, "program", program_invocation_name);
    json_close(&j, '}');
    report_write(&j);
}

bool report_wanted(void) {
    return report.file >= 0;
}

int report_check(void) {
    return report.check;
}

uint64_t report_launch_limit(void) {
    return report.limit ? report.limit : UINT64_MAX;
}

/* The C++ runtime's function, which most programs have. The result is from malloc, or NULL. */
static char *demangle(const char *name) {
    char *(*function)(const char *, char *, size_t *, int *);
    void *found = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    void *library = found ? NULL : dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
    int status;
    if (library) found = dlsym(library, "__cxa_demangle");
    memcpy(&function, &found, sizeof function);
    return found ? function(name, NULL, NULL, &status) : NULL;
}

static bool matches(const char *text) {
    return !regexec(&report.pattern, text, 0, NULL, 0);
}

/* "void tile<float, 16>(float*)" as reports write it: "tile<float, 16>". */
static char *without_types(char *name) {
    char *begin = name, *end = name + strlen(name);
    int depth = 0;
    for (char *at = name; *at; at++) {
        if (*at == '(' && !depth && strncmp(at, "(anonymous namespace)", 21)) {
            end = at;
            break;
        }
        depth += *at == '<' || *at == '(';
        depth -= *at == '>' || *at == ')';
        if (*at == ' ' && !depth) begin = at + 1;
    }
    *end = 0;
    return begin;
}

bool report_examines(const char *kernel) {
    if (!report.has_pattern || matches(kernel)) return true;
    char *name = demangle(kernel);
    const bool found = name && (matches(name) || matches(without_types(name)));
    free(name);
    return found;
}

/* A generator of 64-bit numbers: SplitMix64. */
uint64_t report_draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* One block of each of n equal parts of the grid. */
uint64_t *report_sample(uint64_t blocks, size_t *n) {
    if (!report.sample || report.sample >= blocks) return NULL;
    uint64_t *drawn = malloc(report.sample * sizeof *drawn), state = report.seed;
    if (!drawn) return NULL;
    for (uint64_t k = 0; k < report.sample; k++) {
        const uint64_t first = (uint64_t)((__uint128_t)blocks * k / report.sample);
        const uint64_t last = (uint64_t)((__uint128_t)blocks * (k + 1) / report.sample);
        drawn[k] = first + report_draw(&state) % (last - first);
    }
    *n = report.sample;
    return drawn;
}

void report_write(json *j) {
    size_t done = 0;
    json_raw(j, "\n");
    if (report.file >= 0 && !j->out_of_memory && getpid() == report.process)
        while (done < j->n) {
            const ssize_t n = write(report.file, j->text + done, j->n - done);
            if (n <= 0) break;
            done += (size_t)n;
        }
    free(j->text);
    *j = (json){0};
}

/* ---- allocations ---- */

void report_allocation(json *j, const allocation *a) {
    static const char *const kinds[] = {
        "device memory",    "pinned memory", "managed memory",       "registered memory",
        "module variables", "an array",      "a range of addresses", "memory of another process"};
    json_open(j, NULL, '{');
    json_text(j, "kind", kinds[a->kind]);
    json_unsigned(j, "address", memory_address(a));
    json_unsigned(j, "bytes", a->bytes);
    json_text(j, "call", a->call);
    json_true_false(j, "live", a->live);
    json_next(j, "callers");
    report_frames_json(j, &a->allocated);
    json_next(j, "freed");
    report_frames_json(j, &a->freed);
    json_close(j, '}');
}

static void begin_record(json *j, const char *record) {
    json_open(j, NULL, '{');
    json_text(j, "record", record);
}

static void misuse_record(const char *kind, const allocation *a, const char *message,
                          const frames *callers) {
    json j = {0};
    begin_record(&j, "misuse");
    json_text(&j, "kind", kind);
    json_text(&j, "message", message);
    json_next(&j, "callers");
    report_frames_json(&j, callers);
    json_next(&j, "allocation");
    if (a)
        report_allocation(&j, a);
    else
        json_text(&j, NULL, NULL);
    json_close(&j, '}');
    report_write(&j);
}

void report_misuse(const char *kind, const allocation *a, const char *format, ...) {
    char message[1024];
    va_list list;
    if (report.file < 0 || report.misuses++ >= MAX_MISUSES) return;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    const frames callers = report_frames();
    misuse_record(kind, a, message, &callers);
}

void report_unsupported(const char *call) {
    json j = {0};
    if (report.file < 0) return;
    const frames callers = report_frames();
    begin_record(&j, "unsupported");
    json_text(&j, "call", call);
    json_next(&j, "callers");
    report_frames_json(&j, &callers);
    json_close(&j, '}');
    report_write(&j);
}

void report_leak(const allocation *a) {
    if (report.file < 0 || getpid() != report.process || report.leaks++ >= MAX_LEAKS) return;
    misuse_record("leak", a, "memory is not freed when its context ends", &a->allocated);
}

/* At the end of the process: memory of contexts that were not destroyed. */
__attribute__((destructor)) void report_end(void) {
    json j = {0};
    if (report.file < 0 || getpid() != report.process) return;
    driver_finish();
    queue_end();
    for (size_t k = 0; k < memory_count(); k++) {
        const allocation *a = memory_at(k);
        if (a && a->live && a->kind != MEMORY_VARIABLES) report_leak(a);
    }
    begin_record(&j, "end");
    json_unsigned(&j, "leaks", report.leaks);
    json_close(&j, '}');
    report_write(&j);
}

/* ---- traces: the same tuples as those of csrc/module/tables.c, as arrays ---- */

static void positions(json *j, const smk_position *at, int n) {
    json_open(j, NULL, '[');
    for (int k = 0; k < n; k++) {
        json_open(j, NULL, '[');
        json_text(j, NULL, at[k].file);
        json_number(j, NULL, at[k].line);
        json_close(j, ']');
    }
    json_close(j, ']');
}

static void one_site(json *j, const smk_site *s) {
    json_open(j, NULL, '[');
    json_true_false(j, NULL, s->shared);
    json_text(j, NULL, s->file);
    json_number(j, NULL, s->line);
    json_text(j, NULL, smk_access_name(s->access));
    json_number(j, NULL, s->width);
    json_unsigned(j, NULL, s->requests);
    json_unsigned(j, NULL, s->wavefronts);
    json_unsigned(j, NULL, s->ideal);
    json_unsigned(j, NULL, s->worst);
    json_unsigned(j, NULL, s->bytes);
    json_number(j, NULL, s->direction);
    positions(j, s->callers, s->n_callers);
    json_open(j, NULL, '[');
    json_extent(j, NULL, s->worst_request.block);
    json_unsigned(j, NULL, s->worst_request.warp);
    json_unsigned(j, NULL, s->worst_request.active);
    json_open(j, NULL, '[');
    for (int lane = 0; lane < 32; lane++)
        json_unsigned(j, NULL, s->worst_request.address[lane]);
    json_close(j, ']');
    json_close(j, ']');
    json_unsigned(j, NULL, s->machine_requests);
    json_unsigned(j, NULL, s->machine_wavefronts);
    json_unsigned(j, NULL, s->machine_ideal);
    json_close(j, ']');
}

static void party(json *j, const smk_party *p) {
    json_open(j, NULL, '[');
    json_text(j, NULL, p->file);
    json_number(j, NULL, p->line);
    json_number(j, NULL, p->ptx_line);
    json_text(j, NULL, p->text);
    json_extent(j, NULL, p->block);
    json_extent(j, NULL, p->thread);
    positions(j, p->callers, p->n_callers);
    json_close(j, ']');
}

static void one_hazard(json *j, const smk_hazard *h) {
    int64_t number = h->buffer, offset = h->offset;
    memory_of_hazard(h, &number, &offset);
    json_open(j, NULL, '[');
    json_text(j, NULL, smk_hazard_name(h->kind));
    party(j, &h->party);
    party(j, &h->other);
    json_text(j, NULL, smk_space_name(h->space));
    json_number(j, NULL, h->offset);
    json_number(j, NULL, h->width);
    json_number(j, NULL, number); /* in place of an argument */
    json_number(j, NULL, offset);
    json_text(j, NULL, h->variable);
    json_number(j, NULL, h->variable_at);
    json_unsigned(j, NULL, h->count);
    json_text(j, NULL, h->message);
    json_close(j, ']');
}

static void totals(json *j, const smk_trace *t) {
    const struct {
        const char *name;
        uint64_t value;
    } all[] = {{"warp_instructions", t->warp_instructions},
               {"barriers", t->barriers},
               {"flops", t->flops},
               {"blocks_traced", t->blocks},
               {"grid_blocks", t->grid_blocks},
               {"shared_bytes", t->shared_bytes}};
    json_open(j, NULL, '{');
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        json_next(j, all[k].name);
        json_unsigned(j, NULL, all[k].value);
    }
    json_close(j, '}');
}

void report_trace(json *j, const smk_trace *t) {
    json_open(j, NULL, '[');
    json_open(j, NULL, '[');
    for (size_t k = 0; k < t->n_sites; k++)
        one_site(j, &t->sites[k]);
    json_close(j, ']');
    json_open(j, NULL, '{');
    for (size_t k = 0; k < t->n_opcodes; k++) {
        json_next(j, t->opcodes[k].opcode);
        json_open(j, NULL, '[');
        json_unsigned(j, NULL, t->opcodes[k].warps);
        json_unsigned(j, NULL, t->opcodes[k].lanes);
        json_unsigned(j, NULL, t->opcodes[k].flops);
        json_close(j, ']');
    }
    json_close(j, '}');
    totals(j, t);
    json_open(j, NULL, '[');
    for (size_t k = 0; k < t->n_hazards; k++)
        one_hazard(j, &t->hazards[k]);
    json_close(j, ']');
    json_true_false(j, NULL, t->checked);
    json_true_false(j, NULL, t->incomplete);
    json_close(j, ']');
}
