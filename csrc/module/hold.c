/* Keeps an array's memory, shape and strides unchanged while a call works on it.
 *
 * Other threads, signal handlers and progress= run Python code during a call. In that code
 * ndarray.resize(refcheck=False) frees the memory of an array even if it has other references. But
 * NumPy never resizes an array that has a weak reference, whatever refcheck is. So array_hold takes
 * a weak reference to the array that owns the memory. It also makes a view, since the shape,
 * strides and dtype of the array itself can be assigned to.
 */
#include "module.h"

/* The object at the end of the chain of bases: the array that owns the memory, or the first object
 * that is neither an array nor a memoryview of another object. */
static PyObject *owner_of(PyArrayObject *array) {
    PyObject *owner = (PyObject *)array;
    for (;;) {
        PyObject *next = PyArray_Check(owner)        ? PyArray_BASE((PyArrayObject *)owner)
                         : PyMemoryView_Check(owner) ? PyMemoryView_GET_BUFFER(owner)->obj
                                                     : NULL;
        if (next == NULL) return owner;
        owner = next;
    }
}

PyArrayObject *array_hold(PyArrayObject *array, PyObject **hold) {
    PyObject *owner = owner_of(array);
    *hold = PyArray_Check(owner) ? PyWeakref_NewRef(owner, NULL) : NULL;
    if (PyErr_Occurred()) return NULL;
    PyArrayObject *view = (PyArrayObject *)PyArray_View(array, NULL, &PyArray_Type);
    if (view == NULL) Py_CLEAR(*hold);
    return view;
}
