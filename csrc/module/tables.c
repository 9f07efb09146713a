/* Variants, devices, configuration and traces as plain tuples and dicts, which the Python files
 * wrap in classes. */
#include "module.h"

#include "../cuda/gpu.h"

/* Appends to a list; steals `item`. Fails if `item` is NULL. */
static int append(PyObject *list, PyObject *item) {
    int failed = item == NULL || PyList_Append(list, item) < 0;
    Py_XDECREF(item);
    return failed;
}

static PyObject *as_tuple(PyObject *list) {
    PyObject *tuple = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple;
}

/* ---- variants ---- */

static PyObject *legal_values(const smk_param *param) {
    if (param->n_legal == 0) {
        return PyObject_CallFunction((PyObject *)&PyRange_Type, "LL", (long long)param->first,
                                     (long long)param->last + 1);
    }
    PyObject *legal = PyTuple_New(param->n_legal);
    for (int i = 0; legal && i < param->n_legal; i++) {
        PyObject *value = PyLong_FromLongLong(param->legal[i]);
        if (value == NULL) {
            Py_CLEAR(legal);
            break;
        }
        PyTuple_SET_ITEM(legal, i, value);
    }
    return legal;
}

static PyObject *params_of(const smk_variant *variant) {
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < variant->n_params; i++) {
        const smk_param *param = &variant->params[i];
        if (append(list, Py_BuildValue("(sLNs)", param->name, (long long)param->fallback,
                                       legal_values(param), param->doc))) {
            Py_CLEAR(list);
        }
    }
    return as_tuple(list);
}

static PyObject *dtypes_of(const smk_variant *variant) {
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < variant->n_dtypes; i++)
        if (append(list, PyUnicode_FromString(variant->dtypes[i].name))) Py_CLEAR(list);
    return as_tuple(list);
}

static PyObject *product_bits(const smk_variant *variant) {
    return variant->product_bits ? PyLong_FromLong(variant->product_bits) : Py_NewRef(Py_None);
}

PyObject *table_variants(void) {
    static const char *const strides[] = {"rows", "rows or columns", "any"};
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < smk_n_variants; i++) {
        const smk_variant *variant = &smk_variants[i];
        if (append(list, Py_BuildValue("(ssszlNNsNs)", smk_op_names[variant->op], variant->name,
                                       variant->summary, variant->differs_from,
                                       (long)variant->min_sm, dtypes_of(variant),
                                       params_of(variant), smk_accuracy_names[variant->accuracy],
                                       product_bits(variant), strides[smk_strides_of(variant)]))) {
            Py_CLEAR(list);
        }
    }
    return as_tuple(list);
}

/* ---- devices and configuration ---- */

PyObject *table_devices(const module_state *state) {
    PyObject *list = PyList_New(0);
    int n = gpu_count(NULL);
    for (int i = 0; list && i < n; i++) {
        gpu_info info;
        smk_status status = {0};
        if (gpu_describe(i, &info, &status)) {
            raise_status(state, &status);
            Py_CLEAR(list);
            break;
        }
        PyObject *name = PyUnicode_DecodeUTF8(info.name, (Py_ssize_t)strlen(info.name), "replace");
        if (append(list, name ? Py_BuildValue("(iNiiiKKi)", i, name, info.sm, info.multiprocessors,
                                              info.clock_khz, (unsigned long long)info.memory_bytes,
                                              (unsigned long long)info.shared_bytes_optin,
                                              info.driver_version)
                              : NULL)) {
            Py_CLEAR(list);
        }
    }
    return as_tuple(list);
}

static PyObject *version_or_reason(int version, const smk_status *why) {
    if (version > 0) return PyUnicode_FromFormat("%d.%d", version / 1000, version % 1000 / 10);
    return PyUnicode_DecodeUTF8(why->message, (Py_ssize_t)strlen(why->message), "replace");
}

PyObject *table_config(module_state *state) {
    if (image_find_nvrtc(state)) return NULL;
    smk_status no_gpu = {0}, no_nvrtc = {0};
    int n = gpu_count(&no_gpu);
    gpu_info info = {0};
    if (n > 0) gpu_describe(0, &info, &no_gpu);
    return Py_BuildValue("{sssisOsOsNsN}", "version", SMK_VERSION, "gpus", n, "images",
                         state->image_directory, "kernels", state->kernel_directory, "driver",
                         version_or_reason(info.driver_version, &no_gpu), "nvrtc",
                         version_or_reason(nvrtc_version(&no_nvrtc), &no_nvrtc));
}

/* ---- traces ---- */

static PyObject *table_callers(const smk_site *site) {
    PyObject *list = PyList_New(0);
    for (int k = 0; list && k < site->n_callers; k++)
        if (append(list, Py_BuildValue("(zi)", site->callers[k].file, site->callers[k].line)))
            Py_CLEAR(list);
    return as_tuple(list);
}

/* (block, warp, active mask, 32 addresses) */
static PyObject *table_request(const smk_request *request) {
    PyObject *addresses = PyList_New(0);
    for (int lane = 0; addresses && lane < 32; lane++) {
        if (append(addresses,
                   PyLong_FromUnsignedLongLong((unsigned long long)request->address[lane]))) {
            Py_CLEAR(addresses);
        }
    }
    return Py_BuildValue("((III)IIN)", request->block[0], request->block[1], request->block[2],
                         request->warp, request->active, as_tuple(addresses));
}

static PyObject *party_of(const smk_party *p) {
    PyObject *callers = PyList_New(0);
    for (int k = 0; callers && k < p->n_callers; k++)
        if (append(callers, Py_BuildValue("(zi)", p->callers[k].file, p->callers[k].line)))
            Py_CLEAR(callers);
    return Py_BuildValue("(ziiz(III)(III)N)", p->file, p->line, p->ptx_line, p->text, p->block[0],
                         p->block[1], p->block[2], p->thread[0], p->thread[1], p->thread[2],
                         as_tuple(callers));
}

PyObject *table_benign_kinds(void) {
    PyObject *list = PyList_New(0);
    for (int kind = 0; list && kind < SMK_N_HAZARDS; kind++)
        if (!smk_is_hazard((smk_hazard_kind)kind) &&
            append(list, PyUnicode_FromString(smk_hazard_name((smk_hazard_kind)kind))))
            Py_CLEAR(list);
    return as_tuple(list);
}

static PyObject *hazards_of(const smk_trace *trace) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < trace->n_hazards; i++) {
        const smk_hazard *h = &trace->hazards[i];
        if (append(list,
                   Py_BuildValue("(sNNzLiiLzLKz)", smk_hazard_name(h->kind), party_of(&h->party),
                                 party_of(&h->other), smk_space_name(h->space),
                                 (long long)h->offset, h->width, h->argument,
                                 (long long)h->argument_at, h->variable, (long long)h->variable_at,
                                 (unsigned long long)h->count, h->message))) {
            Py_CLEAR(list);
        }
    }
    return as_tuple(list);
}

static PyObject *instructions_of(const smk_trace *trace) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < trace->n_instructions; i++) {
        const smk_instruction_count *p = &trace->instructions[i];
        PyObject *costs = PyList_New(0);
        for (int k = 0; costs && k < SMK_N_WIDTHS; k++) {
            const smk_wider_cost *c = &p->wider[k];
            if (append(costs, Py_BuildValue("(KKIIII)", (unsigned long long)c->wavefronts,
                                            (unsigned long long)c->ideal, c->min_wavefronts,
                                            c->max_wavefronts, c->min_ideal, c->max_ideal))) {
                Py_CLEAR(costs);
            }
        }
        if (append(list, Py_BuildValue("(siKLKN)", p->function, p->ptx_line,
                                       (unsigned long long)p->warps, (long long)p->site,
                                       (unsigned long long)p->requests, as_tuple(costs)))) {
            Py_CLEAR(list);
        }
    }
    return as_tuple(list);
}

PyObject *table_trace(const smk_trace *trace) {
    PyObject *sites = PyList_New(0);
    for (size_t i = 0; sites && i < trace->n_sites; i++) {
        const smk_site *site = &trace->sites[i];
        if (append(sites,
                   Py_BuildValue("(NzisiKKKKKiNNKKK)", PyBool_FromLong(site->shared), site->file,
                                 site->line, smk_access_name(site->access), site->width,
                                 (unsigned long long)site->requests,
                                 (unsigned long long)site->wavefronts,
                                 (unsigned long long)site->ideal, (unsigned long long)site->worst,
                                 (unsigned long long)site->bytes, site->direction,
                                 table_callers(site), table_request(&site->worst_request),
                                 (unsigned long long)site->machine_requests,
                                 (unsigned long long)site->machine_wavefronts,
                                 (unsigned long long)site->machine_ideal))) {
            Py_CLEAR(sites);
        }
    }
    PyObject *opcodes = PyDict_New();
    for (size_t i = 0; opcodes && i < trace->n_opcodes; i++) {
        const smk_opcode_count *o = &trace->opcodes[i];
        PyObject *count = Py_BuildValue("(KKK)", (unsigned long long)o->warps,
                                        (unsigned long long)o->lanes, (unsigned long long)o->flops);
        if (count == NULL || PyDict_SetItemString(opcodes, o->opcode, count) < 0) Py_CLEAR(opcodes);
        Py_XDECREF(count);
    }
    return Py_BuildValue(
        "(NN{sKsKsKsKsKsK}NNNN)", as_tuple(sites), opcodes, "warp_instructions",
        (unsigned long long)trace->warp_instructions, "barriers",
        (unsigned long long)trace->barriers, "flops", (unsigned long long)trace->flops,
        "blocks_traced", (unsigned long long)trace->blocks, "grid_blocks",
        (unsigned long long)trace->grid_blocks, "shared_bytes",
        (unsigned long long)trace->shared_bytes, hazards_of(trace), PyBool_FromLong(trace->checked),
        PyBool_FromLong(trace->incomplete), instructions_of(trace));
}
