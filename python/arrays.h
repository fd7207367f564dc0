// NumPy's arrays as the bindings take them: dense, of one type, converted where they are not. All functions hold the GIL.
#pragma once

#include <vector>

#include <pybind11/numpy.h>

namespace shoal::python {

template <class T>
using Array = pybind11::array_t<T, pybind11::array::c_style | pybind11::array::forcecast>;

template <class T>
std::vector<T> copied(const Array<T>& array) {
  return {array.data(), array.data() + array.size()};
}

}  // namespace shoal::python
