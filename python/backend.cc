// The c10d process group as Python sees it: creation, and the goodbye before the interpreter ends (shoal/_backend.py).
#include "shoal/nn/backend.h"

#include <pybind11/chrono.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "shoal/nn/torch_error.h"

namespace py = pybind11;

namespace shoal::python {
namespace {

// Crosses into Python as shoal.PeerLost, also from inside autograd, which knows PyTorchError but not pybind11's translators.
struct PeerLost final : torch::PyTorchError {
  using PyTorchError::PyTorchError;
  PyObject* python_type() override {
    static PyObject* const type = [] {  // kept for the life of the interpreter
      PyObject* const package = PyImport_ImportModule("shoal");
      PyObject* const found = package ? PyObject_GetAttrString(package, "PeerLost") : nullptr;
      if (!found) PyErr_Clear();
      return found ? found : PyExc_RuntimeError;
    }();
    return type;
  }
};

}  // namespace

void bind_backend(py::module_& module) {
  nn::lost_peers_become([](const Error& error) { return std::make_exception_ptr(PeerLost(error.what())); });
  py::class_<nn::Backend, c10::intrusive_ptr<nn::Backend>, c10d::Backend>(module, "Backend")
      .def_property_readonly("sent", &nn::Backend::sent, "Bytes that this member sent, and those of them that members of its host read in place.");
  // Both block: other threads of Python go on meanwhile.
  module.def(
      "create_backend",
      [](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, std::chrono::milliseconds timeout, std::string name,
         std::vector<std::uint64_t> ranks) {
        return c10::make_intrusive<nn::Backend>(store, rank, size, timeout,
                                                nn::Backend::Identity{std::move(name), std::move(ranks)});
      },
      py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"), py::arg("name"), py::arg("ranks"),
      py::call_guard<py::gil_scoped_release>());
  module.def("flight_record", [] { return py::bytes(nn::FlightRecorder::local().dump()); },
             "The flight recorder's operations, pickled as torch.distributed.flight_recorder reads them.");
  module.def("close_backends", &nn::Backend::close_all, py::call_guard<py::gil_scoped_release>());
}

}  // namespace shoal::python
