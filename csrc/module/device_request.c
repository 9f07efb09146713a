/* The part of a request that knows where arrays are: NumPy's, or all of them on one GPU.
 *
 * Arrays on a GPU (CuPy, PyTorch, Numba, whatever speaks DLPack or __cuda_array_interface__) are read and
 * written in place, on the stream that their library uses now, and the call returns when its kernels
 * are queued there. What a kernel cannot read or write where it is, is copied on the GPU (device_copies.h).
 */
#include "../cuda/gpu.h"
#include "device_array.h"
#include "device_copies.h"

/* ---- where they are ---- */

/* What needs no look at its attributes: it is in host memory. */
static bool is_host(PyObject *given) {
    return PyArray_Check(given) || PyList_Check(given) || PyTuple_Check(given) ||
           PyFloat_Check(given) || PyLong_Check(given) || PyArray_IsScalar(given, Generic);
}

static int refuse_mixture(const char *op, const char *there, const char *here) {
    PyErr_Format(PyExc_ValueError,
                 "%s: %s is in the memory of a GPU and %s is not; nothing is copied silently: move "
                 "one of them, as with cupy.asarray(%s), %s.get() or %s.cpu().numpy()",
                 op, there, here, here, there, there);
    return -1;
}

array_label request_label(const request *r, int i) {
    const call_form *form = &call_forms[r->asked->op];
    return (array_label){smk_op_names[r->asked->op], i < form->n_inputs ? form->inputs[i] : "out",
                         i};
}

/* `out` is looked at like an input; it comes behind them. */
static PyObject *array_given(const request *r, int i) {
    return i < call_forms[r->asked->op].n_inputs ? r->asked->inputs[i] : r->asked->out;
}

static int check_ordinal(const request *r, int i) {
    const int own = r->arrays[i].ordinal;
    if (own < 0 || r->on.ordinal < 0 || own == r->on.ordinal) {
        return 0;
    }
    PyErr_Format(PyExc_ValueError,
                 "%s: %s is in the memory of cuda:%d and another array in that of cuda:%d; "
                 "a call runs on one device",
                 smk_op_names[r->asked->op], request_label(r, i).name, own, r->on.ordinal);
    return -1;
}

/* Reads all arrays that are not NumPy's. Sets on_device, the ordinal (negative: any) and the stream
 * of those on a GPU. */
static int read_arrays(module_state *state, request *r) {
    const char *there = NULL, *here = NULL;
    r->on.ordinal = ORDINAL_ANY;
    for (int i = 0; i <= call_forms[r->asked->op].n_inputs; i++) {
        PyObject *given = array_given(r, i);
        device_array *array = &r->arrays[i];
        if (given == NULL) {
            continue;
        }
        if (!is_host(given) &&
            device_array_read(state, given, request_label(r, i), r->stream, array)) {
            return -1;
        }
        if (array->place != ARRAY_DEVICE) {
            here = here ? here : request_label(r, i).name;
            continue;
        }
        there = there ? there : request_label(r, i).name;
        if (check_ordinal(r, i)) {
            return -1;
        }
        r->on.ordinal = array->ordinal >= 0 ? array->ordinal : r->on.ordinal;
        r->stream = r->stream ? r->stream : array->stream;
    }
    r->on_device = there != NULL;
    return there && here ? refuse_mixture(smk_op_names[r->asked->op], there, here) : 0;
}

/* The call runs behind what other streams' libraries have queued for its arrays. */
static void order_behind(request *r) {
    r->stream = r->stream ? r->stream : GPU_DEFAULT_STREAM;
    for (int i = 0; i <= call_forms[r->asked->op].n_inputs; i++) {
        void *stream = r->arrays[i].place == ARRAY_DEVICE ? r->arrays[i].stream : NULL;
        if (stream && stream != r->stream) {
            r->after[r->n_after++] = stream;
        }
    }
}

static int choose_host_device(const module_state *state, request *r, bool emulate) {
    if (r->asked->n_devices) {
        if (emulate || r->asked->device != Py_None || r->asked->stream != Py_None) {
            PyErr_SetString(PyExc_ValueError, "devices names the GPUs of a call on host arrays; "
                                              "pass neither device nor stream beside it");
            return -1;
        }
        r->on = (device){.ordinal = r->asked->devices[0]};
        for (int i = 0, sm; i < r->asked->n_devices; i++) { /* also those that get no part */
            if (device_sm(state, &(device){.ordinal = r->asked->devices[i]}, &sm)) {
                return -1;
            }
        }
        return 0;
    }
    if (emulate && r->asked->device == Py_None) {
        r->on = (device){.emulated = true};
    } else if (device_read(state, r->asked->device, &r->on)) {
        return -1;
    }
    if (emulate && !r->on.emulated) {
        PyErr_SetString(PyExc_ValueError,
                        "a trace counts on the emulator: leave device out, or pass 'emu'");
        return -1;
    }
    if (r->on.emulated && r->asked->stream != Py_None) {
        return stream_refuse();
    }
    return 0;
}

int request_find_arrays(module_state *state, request *r, bool emulate) {
    const call *asked = r->asked;
    const char *op = smk_op_names[asked->op];
    device named = {.ordinal = ORDINAL_ANY};
    if (stream_read(asked->stream, &r->stream) || read_arrays(state, r)) {
        return -1;
    }
    if (!r->on_device) {
        return choose_host_device(state, r, emulate);
    }
    if (asked->n_devices) {
        PyErr_Format(PyExc_ValueError,
                     "%s: devices is for arrays in host memory; these are on a GPU, where they are "
                     "computed",
                     op);
        return -1;
    }
    if (asked->op == SMK_PROBE) {
        PyErr_SetString(PyExc_ValueError,
                        "probe: x is in the memory of a GPU; a probe measures, and takes host "
                        "memory: x.get() of CuPy, x.cpu().numpy() of PyTorch");
        return -1;
    }
    if (asked->device != Py_None && device_read(state, asked->device, &named)) {
        return -1;
    }
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
    if (r->on.ordinal < 0) {
        r->on.ordinal = named.ordinal < 0 ? 0 : named.ordinal;
    }
    order_behind(r);
    return 0;
}

/* ---- inputs ---- */

PyArrayObject *request_array(module_state *state, request *r, int i) {
    PyObject *given = r->asked->inputs[i];
    const array_label label = request_label(r, i);
    PyArrayObject *array = r->arrays[i].place >= ARRAY_HOST_DESCRIBED
                               ? device_array_view(state, &r->arrays[i], given, label)
                               : operand_array(given, label.op, label.name);
    if (array == NULL || r->on_device) {
        return array;
    }
    PyArrayObject *view = array_hold(array, &r->holds[i]);
    Py_DECREF(array);
    return view;
}

int request_refuse_elements(const request *r, const char *name, PyArrayObject *array,
                            PyArray_Descr *wanted) {
    const char *op = smk_op_names[r->asked->op];
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
    operand *into = &r->inputs[i], where_it_is;
    r->n_inputs = i + 1;
    if (!r->on_device) {
        return operand_place(array, wanted, one_dimensional, taken, into);
    }
    switch (operand_place_on_device(array, wanted, one_dimensional, taken, into)) {
    case OPERAND_FITS: return 0;
    case OPERAND_REFUSED:
        return request_refuse_elements(r, call_forms[r->asked->op].inputs[i], array, wanted);
    case OPERAND_SPREAD: break;
    }
    where_it_is = *into;
    operand_pack_on_device(&where_it_is, into);
    const int failed = device_copies_add(state, r, &where_it_is, into, i, COPY_BEFORE);
    operand_clear(&where_it_is);
    return failed;
}
