/* Modifiers that PTX 1.x and its targets sm_10 to sm_13 leave out.
 *
 * Targets sm_1x flush subnormals of f32, and their mad needs no rounding. Before PTX 1.4 the
 * approximate functions were the default. Source: the PTX ISA, and what ptxas 13.0 makes of such
 * modules for sm_90.
 */
#include <string.h>

#include "parser.h"

typedef enum rounding_default { NO_DEFAULT, TO_NEAREST, APPROXIMATE } rounding_default;

typedef struct legacy_row {
    ptx_opcode op;
    bool flushes; /* f32, on sm_1x */
    /* Without a rounding, .approx or .full: of mad on sm_1x, of the others before PTX 1.4. */
    rounding_default f32, f64;
} legacy_row;

static const legacy_row rows[] = {
    {PTX_OP_abs, true, NO_DEFAULT, NO_DEFAULT},   {PTX_OP_add, true, NO_DEFAULT, NO_DEFAULT},
    {PTX_OP_cos, true, APPROXIMATE, NO_DEFAULT},  {PTX_OP_cvt, true, NO_DEFAULT, NO_DEFAULT},
    {PTX_OP_div, true, APPROXIMATE, TO_NEAREST},  {PTX_OP_ex2, true, APPROXIMATE, NO_DEFAULT},
    {PTX_OP_lg2, true, APPROXIMATE, NO_DEFAULT},  {PTX_OP_mad, true, TO_NEAREST, TO_NEAREST},
    {PTX_OP_max, true, NO_DEFAULT, NO_DEFAULT},   {PTX_OP_min, true, NO_DEFAULT, NO_DEFAULT},
    {PTX_OP_mul, true, NO_DEFAULT, NO_DEFAULT},   {PTX_OP_neg, true, NO_DEFAULT, NO_DEFAULT},
    {PTX_OP_rcp, true, APPROXIMATE, TO_NEAREST},  {PTX_OP_rsqrt, true, APPROXIMATE, APPROXIMATE},
    {PTX_OP_set, true, NO_DEFAULT, NO_DEFAULT},   {PTX_OP_setp, true, NO_DEFAULT, NO_DEFAULT},
    {PTX_OP_sin, true, APPROXIMATE, NO_DEFAULT},  {PTX_OP_slct, true, NO_DEFAULT, NO_DEFAULT},
    {PTX_OP_sqrt, true, APPROXIMATE, TO_NEAREST}, {PTX_OP_sub, true, NO_DEFAULT, NO_DEFAULT},
};

static bool has_type(const ptx_instruction *in, ptx_type type) {
    return in->types & 1u << type;
}

static bool written(const ptx_instruction *in, const char *word) {
    for (uint32_t k = 0; k < in->n_modifiers; k++)
        if (!strcmp(in->modifiers[k], word)) return true;
    return false;
}

static bool rounds(const ptx_instruction *in) {
    static const char *const words[] = {"rn", "rz", "rm", "rp", "approx", "full"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (written(in, words[k])) return true;
    return false;
}

static bool add(parser *p, ptx_instruction *in, const char *word) {
    if (in->n_modifiers == PTX_MAX_MODIFIERS || written(in, word)) return true;
    name *n = names_get(&p->names, word, strlen(word));
    if (!n) return parser_no_memory(p, strlen(word));
    in->modifiers[in->n_modifiers++] = n->text;
    return true;
}

bool parser_add_defaults(parser *p, ptx_instruction *in) {
    const char *target = p->module->target;
    const bool sm_1x = target && strlen(target) == 5 && !strncmp(target, "sm_1", 4);
    const bool f32 = has_type(in, PTX_F32), f64 = has_type(in, PTX_F64);
    if ((!sm_1x && p->module->version >= 14) || (!f32 && !f64)) return true;
    const legacy_row *row = rows, *end = rows + sizeof rows / sizeof *rows;
    while (row < end && row->op != in->op)
        row++;
    if (row == end) return true;
    const bool has_default = in->op == PTX_OP_mad ? sm_1x : p->module->version < 14;
    const rounding_default rounding = f32 ? row->f32 : row->f64;
    if (has_default && rounding != NO_DEFAULT && !rounds(in) &&
        !add(p, in, rounding == TO_NEAREST ? "rn" : "approx"))
        return false;
    return !(sm_1x && row->flushes && f32 && !f64) || add(p, in, "ftz");
}
