#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "shoal/nn/data_parallel.h"

namespace py = pybind11;

namespace shoal::python {
namespace {

using nn::DataParallel;
using nn::Session;
using Released = py::call_guard<py::gil_scoped_release>;

// Autograd carries a python_error unchanged to the caller of backward(); any other exception becomes a RuntimeError.
void raise_through_autograd(const Error& error) {
  const py::gil_scoped_acquire gil;
  set_python_error(error);
  python_error thrown;
  thrown.persist();
  throw thrown;
}

std::unique_ptr<DataParallel> make(Session& session, const std::vector<std::pair<std::string, at::Tensor>>& parameters,
                                   const std::vector<at::Tensor>& buffers, const std::optional<std::string>& plan,
                                   const std::string& plan_file) {
  std::vector<nn::NamedTensor> named;
  for (const auto& [name, tensor] : parameters) named.push_back({name, tensor});
  DataParallel::Options options;
  options.raise = raise_through_autograd;
  if (plan) options.plan = exchange::plan_from_json(*plan, plan_file);
  return std::make_unique<DataParallel>(session, std::move(named), buffers, std::move(options));
}

}  // namespace

void bind_training(py::module_& module) {
  py::class_<DataParallel>(module, "DataParallel")
      .def(py::init(&make), py::arg("session"), py::arg("parameters"), py::arg("buffers"), py::arg("plan"), py::arg("plan_file"),
           py::keep_alive<1, 2>(), Released())
      .def("set_first_use", &DataParallel::set_first_use)
      .def("forward_begins", &DataParallel::forward_begins)
      .def("forward_ends", &DataParallel::forward_ends)
      .def("watch", &DataParallel::watch)
      .def("set_synchronize", &DataParallel::set_synchronize)
      .def("set_samples", &DataParallel::set_samples)
      .def_property_readonly("is_open", &DataParallel::is_open)
      .def("install", &DataParallel::install, Released())
      .def("finish", &DataParallel::finish, Released())
      .def("commit", &DataParallel::commit, Released())
      .def("idle_iteration", &DataParallel::idle_iteration, Released())
      .def("take_over_from", &DataParallel::take_over_from)
      .def("communication", [](const DataParallel& self) {
        const auto sums = self.communication();
        return std::make_pair(sums.whole, sums.exposed);
      })
      .def_property_readonly("iteration", &DataParallel::iteration)
      .def_property_readonly("plan_is_final", &DataParallel::plan_is_final)
      .def("plan", [](const DataParallel& self) { return exchange::to_json(self.plan()); });
}

}  // namespace shoal::python
