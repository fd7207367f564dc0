// The c10d process group as Python sees it: creation, and the goodbye before the interpreter ends (shoal/_backend.py).
#include "shoal/nn/backend.h"

#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings.h"

namespace py = pybind11;

namespace shoal::python {

void bind_backend(py::module_& module) {
  py::class_<nn::Backend, c10::intrusive_ptr<nn::Backend>, c10d::Backend>(module, "Backend");
  // Both block: other threads of Python go on meanwhile.
  module.def(
      "create_backend",
      [](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, std::chrono::milliseconds timeout) {
        return c10::make_intrusive<nn::Backend>(store, rank, size, timeout);
      },
      py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"), py::call_guard<py::gil_scoped_release>());
  module.def("close_backends", &nn::Backend::close_all, py::call_guard<py::gil_scoped_release>());
}

}  // namespace shoal::python
