#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "shoal/nn/tensor_regions.h"

namespace py = pybind11;

namespace shoal::python {

namespace {

// The loop may want Python's lock, to let go of a tensor, while this waits for the loop.
struct Unlocked {
  void operator()(nn::TensorRegions* regions) const {
    const py::gil_scoped_release release;
    delete regions;
  }
};

}  // namespace

void bind_regions(py::module_& module) {
  using nn::TensorRegions;
  py::class_<TensorRegions, std::unique_ptr<TensorRegions, Unlocked>>(module, "Regions")
      .def(py::init<nn::Session&>(), py::arg("session"), py::keep_alive<1, 2>(), Released())
      .def("add", &TensorRegions::add, py::arg("tensor"), Released())
      .def("allocate", &TensorRegions::allocate, py::arg("shape"), py::arg("type"), Released())
      .def("put", &TensorRegions::put, py::arg("to"), py::arg("region"), py::arg("offset"), py::arg("tensor"), Released())
      .def("get", &TensorRegions::get, py::arg("source"), py::arg("region"), py::arg("offset"), py::arg("into"), Released())
      .def("signal", &TensorRegions::signal, py::arg("to"), py::arg("sequence"), Released())
      .def("settle", &TensorRegions::settle, Released())
      .def("wait", &TensorRegions::wait, py::arg("source"), py::arg("sequence"), Released());
}

}  // namespace shoal::python
