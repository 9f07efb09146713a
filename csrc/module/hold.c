/* Arrays whose memory and shape stay as they are while a call works on them.
 *
 * Other threads, signal handlers and progress= run Python code in the middle of a call, and ndarray.resize(refcheck=False)
 * frees an array's memory whoever else looks at it. NumPy refuses that in one case, whatever refcheck says: there is a
 * weak reference to the array. So that is what is taken, of the array that owns the memory; and a view, as the
 * attributes of the array itself (shape, strides, dtype) can be assigned to.
 */
#include "module.h"

/* The one that NumPy allocated the memory for, or a first one that is not NumPy's. */
static PyObject *owner_of(PyArrayObject *array) {
    PyObject *owner = (PyObject *)array;
    for (;;) {
        PyObject *next = PyArray_Check(owner)        ? PyArray_BASE((PyArrayObject *)owner)
                         : PyMemoryView_Check(owner) ? PyMemoryView_GET_BUFFER(owner)->obj
                                                     : NULL;
        if (next == NULL) {
            return owner;
        }
        owner = next;
    }
}

PyArrayObject *array_hold(PyArrayObject *array, PyObject **hold) {
    PyObject *owner = owner_of(array);
    *hold = PyArray_Check(owner) ? PyWeakref_NewRef(owner, NULL) : NULL;
    if (PyErr_Occurred()) {
        return NULL;
    }
    PyArrayObject *view = (PyArrayObject *)PyArray_View(array, NULL, &PyArray_Type);
    if (view == NULL) {
        Py_CLEAR(*hold);
    }
    return view;
}
