/* Finds where a call's arrays are (all in host memory, or all on one GPU), the device and the
 * stream, and prepares the inputs.
 *
 * Arrays on a GPU (CuPy, PyTorch, Numba, or any that support DLPack or __cuda_array_interface__)
 * are read and written in place, on the current stream of their library. The call returns when its
 * kernels are enqueued there. Arrays that a kernel cannot read or write in place are copied on the
 * GPU (device_copies.h).
 */
#include "../cuda/gpu.h"
#include "device_array.h"
#include "device_copies.h"

/* ---- where the arrays are ---- */

/* True for types that are always in host memory, so that no attribute has to be looked up. */
static bool is_host(PyObject *given) {
    return PyArray_Check(given) || PyList_Check(given) || PyTuple_Check(given) ||
           PyFloat_Check(given) || PyLong_Check(given) || PyArray_IsScalar(given, Generic);
}

static int refuse_mixture(const char *op, const char *on_gpu, const char *on_host) {
    PyErr_Format(PyExc_ValueError,
                 "%s: %s is in the memory of a GPU and %s is not; nothing is copied silently: move "
                 "one of them, as with cupy.asarray(%s), %s.get() or %s.cpu().numpy()",
                 op, on_gpu, on_host, on_host, on_gpu, on_gpu);
    return -1;
}

array_label request_label(const request *r, int i) {
    const call_form *form = &call_forms[r->call->op];
    return (array_label){smk_op_names[r->call->op], i < form->n_inputs ? form->inputs[i] : "out",
                         i};
}

/* Array i of the call: the inputs, then `out` (NULL: not given). */
static PyObject *array_given(const request *r, int i) {
    return i < call_forms[r->call->op].n_inputs ? r->call->inputs[i] : r->call->out;
}

static int check_ordinal(const request *r, int i) {
    const int own = r->arrays[i].ordinal;
    if (own < 0 || r->on.ordinal < 0 || own == r->on.ordinal) return 0;
    PyErr_Format(PyExc_ValueError,
                 "%s: %s is in the memory of cuda:%d and another array in that of cuda:%d; "
                 "a call runs on one device",
                 smk_op_names[r->call->op], request_label(r, i).name, own, r->on.ordinal);
    return -1;
}

/* Reads all arrays that are not NumPy's. Sets on_device, and the ordinal (negative: any) and the
 * stream of those on a GPU. */
static int read_arrays(module_state *state, request *r) {
    const char *on_gpu = NULL, *on_host = NULL;
    r->on.ordinal = ORDINAL_ANY;
    for (int i = 0; i <= call_forms[r->call->op].n_inputs; i++) {
        PyObject *given = array_given(r, i);
        device_array *array = &r->arrays[i];
        if (given == NULL) continue;
        if (!is_host(given) &&
            device_array_read(state, given, request_label(r, i), r->stream, array)) {
            return -1;
        }
        if (array->place != ARRAY_DEVICE) {
            on_host = on_host ? on_host : request_label(r, i).name;
            continue;
        }
        on_gpu = on_gpu ? on_gpu : request_label(r, i).name;
        if (check_ordinal(r, i)) return -1;
        r->on.ordinal = array->ordinal >= 0 ? array->ordinal : r->on.ordinal;
        r->stream = r->stream ? r->stream : array->stream;
    }
    r->on_device = on_gpu != NULL;
    return on_gpu && on_host ? refuse_mixture(smk_op_names[r->call->op], on_gpu, on_host) : 0;
}

/* Lists the other streams of the call's arrays, which the call's stream must wait for. */
static void add_stream_waits(request *r) {
    r->stream = r->stream ? r->stream : GPU_DEFAULT_STREAM;
    for (int i = 0; i <= call_forms[r->call->op].n_inputs; i++) {
        void *stream = r->arrays[i].place == ARRAY_DEVICE ? r->arrays[i].stream : NULL;
        if (stream && stream != r->stream) r->after[r->n_after++] = stream;
    }
}

static int choose_host_device(const module_state *state, request *r, bool emulate) {
    if (r->call->n_devices) {
        if (emulate || r->call->device != Py_None || r->call->stream != Py_None) {
            PyErr_SetString(PyExc_ValueError, "devices names the GPUs of a call on host arrays; "
                                              "pass neither device nor stream beside it");
            return -1;
        }
        r->on = (device){.ordinal = r->call->devices[0]};
        for (int i = 0, sm; i < r->call->n_devices; i++) /* also a GPU without a part must exist */
            if (device_sm(state, &(device){.ordinal = r->call->devices[i]}, &sm)) return -1;
        return 0;
    }
    if (emulate && r->call->device == Py_None)
        r->on = (device){.emulated = true};
    else if (device_read(state, r->call->device, &r->on))
        return -1;
    if (emulate && !r->on.emulated) {
        PyErr_SetString(PyExc_ValueError,
                        "a trace counts on the emulator: leave device out, or pass 'emu'");
        return -1;
    }
    if (r->on.emulated && r->call->stream != Py_None) return stream_refuse();
    return 0;
}

int request_find_arrays(module_state *state, request *r, bool emulate) {
    const call *given = r->call;
    const char *op = smk_op_names[given->op];
    device named = {.ordinal = ORDINAL_ANY};
    if (stream_read(given->stream, &r->stream) || read_arrays(state, r)) return -1;
    if (!r->on_device) return choose_host_device(state, r, emulate);
    if (given->n_devices) {
        PyErr_Format(PyExc_ValueError,
                     "%s: devices is for arrays in host memory; these are on a GPU, where they are "
                     "computed",
                     op);
        return -1;
    }
    if (given->op == SMK_PROBE) {
        PyErr_SetString(PyExc_ValueError,
                        "probe: x is in the memory of a GPU; a probe measures, and takes host "
                        "memory: x.get() of CuPy, x.cpu().numpy() of PyTorch");
        return -1;
    }
    if (given->device != Py_None && device_read(state, given->device, &named)) return -1;
    if (emulate || named.emulated) {
        PyErr_Format(PyExc_ValueError,
                     "%s: the arrays are in the memory of a GPU, and device 'emu' works on host "
                     "memory; pass NumPy arrays: x.get() of CuPy, x.cpu().numpy() of PyTorch",
                     op);
        return -1;
    }
    if (named.ordinal >= 0 && r->on.ordinal >= 0 && named.ordinal != r->on.ordinal) {
        PyErr_Format(
            PyExc_ValueError,
            "%s: the arrays are in the memory of cuda:%d, but the device is cuda:%d; leave "
            "device out to run where the arrays are",
            op, r->on.ordinal, named.ordinal);
        return -1;
    }
    if (r->on.ordinal < 0) r->on.ordinal = named.ordinal < 0 ? 0 : named.ordinal;
    add_stream_waits(r);
    return 0;
}

/* ---- inputs ---- */

PyArrayObject *request_array(module_state *state, request *r, int i) {
    PyObject *given = r->call->inputs[i];
    const array_label label = request_label(r, i);
    PyArrayObject *array = r->arrays[i].place >= ARRAY_HOST_DESCRIBED
                               ? device_array_view(state, &r->arrays[i], given, label)
                               : operand_array(given, label.op, label.name);
    if (array == NULL || r->on_device) return array;
    PyArrayObject *view = array_hold(array, &r->holds[i]);
    Py_DECREF(array);
    return view;
}

int request_refuse_elements(const request *r, const char *name, PyArrayObject *array,
                            PyArray_Descr *wanted) {
    const char *op = smk_op_names[r->call->op];
    if (wanted->type_num != NPY_VOID && !PyArray_EquivTypes(PyArray_DESCR(array), wanted)) {
        PyErr_Format(PyExc_TypeError,
                     "%s: %s has dtype %S where %S is needed; on a GPU nothing is converted "
                     "silently: use %s.astype(...) or %s.to(...)",
                     op, name, PyArray_DESCR(array), wanted, name, name);
    } else {
        PyErr_Format(PyExc_ValueError,
                     "%s: %s has elements that do not begin at multiples of their size; pass a "
                     "copy, as %s.copy() of CuPy or %s.clone() of PyTorch",
                     op, name, name, name);
    }
    return -1;
}

int request_place(module_state *state, request *r, int i, PyArrayObject *array,
                  PyArray_Descr *wanted, operand_shape one_dimensional, smk_strides taken) {
    operand *into = &r->inputs[i], unpacked;
    r->n_inputs = i + 1;
    if (!r->on_device) return operand_place(array, wanted, one_dimensional, taken, into);
    switch (operand_place_on_device(array, wanted, one_dimensional, taken, into)) {
    case OPERAND_FITS: return 0;
    case OPERAND_REFUSED:
        return request_refuse_elements(r, call_forms[r->call->op].inputs[i], array, wanted);
    case OPERAND_NEEDS_COPY: break;
    }
    unpacked = *into;
    operand_pack_on_device(&unpacked, into);
    const int failed = device_copies_add(state, r, &unpacked, into, i, COPY_BEFORE);
    operand_clear(&unpacked);
    return failed;
}
