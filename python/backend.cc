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

// Crosses into Python as a class of shoal.errors, also from inside autograd, which knows PyTorchError but not pybind11's translators.
class Crossing final : public torch::PyTorchError {
 public:
  Crossing(const char* line, const char* kind) : PyTorchError(line), kind_(kind) {}
  PyObject* python_type() override {
    PyObject* const module = PyImport_ImportModule("shoal.errors");
    PyObject* const found = module ? PyObject_GetAttrString(module, kind_) : nullptr;
    if (!found) PyErr_Clear();
    Py_XDECREF(module);
    Py_XDECREF(found);  // its module has it as long as the interpreter lives
    return found ? found : PyExc_RuntimeError;
  }

 private:
  const char* kind_;
};

std::exception_ptr crossing(const Error& error) {
  if (error.code() == Code::peer_lost) return std::make_exception_ptr(Crossing(error.what(), "PeerLost"));
  const bool is_mistake = error.code() == Code::invalid_argument || error.code() == Code::unsupported;
  return is_mistake ? std::make_exception_ptr(Crossing(error.what(), "Mistake")) : nullptr;
}

}  // namespace

void bind_backend(py::module_& module) {
  nn::errors_become(&crossing);
  py::class_<nn::Backend, c10::intrusive_ptr<nn::Backend>, c10d::Backend>(module, "Backend")
      .def_property_readonly("sent", &nn::Backend::sent, "Bytes that this member sent, and those of them that members of its host read in place.");
  // Both block: other threads of Python go on meanwhile.
  module.def(
      "create_backend",
      [](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, std::chrono::milliseconds timeout, std::string name,
         std::vector<std::uint64_t> ranks, std::optional<c10::DeviceIndex> pretended) {
        return c10::make_intrusive<nn::Backend>(store, rank, size, timeout, nn::Backend::Identity{std::move(name), std::move(ranks)}, pretended);
      },
      py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"), py::arg("name"), py::arg("ranks"), py::arg("pretended"),
      py::call_guard<py::gil_scoped_release>());
  module.def("flight_record", [] { return py::bytes(nn::FlightRecorder::local().dump()); },
             "The flight recorder's operations, pickled as torch.distributed.flight_recorder reads them.");
  module.def("close_backends", &nn::Backend::close_all, py::call_guard<py::gil_scoped_release>());
}

}  // namespace shoal::python
