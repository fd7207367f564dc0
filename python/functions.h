// A Python function as one that servers of tables run: NumPy in, NumPy out (shoal/table/functions.h).
//
// It runs on the thread of functions, which waits for the interpreter there and nowhere else: the transport's loop never does. So who waits for the
// loop, or for that thread, must not hold the interpreter.
#pragma once

#include <pybind11/pytypes.h>

#include "shoal/table/functions.h"

namespace shoal::python {

// function(keys, rows, argument): arrays of (n,), (n, width) and numbers; what it leaves in rows becomes their values. It returns an array whose
// first axis has n, or None. Throws Error{invalid_argument} with the first line of what it raised.
template <class T>
table::Function<T> on_servers(pybind11::function function);

}  // namespace shoal::python
