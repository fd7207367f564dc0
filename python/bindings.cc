// shoal._C: the C++ half of the Python package.
#include "bindings.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "shoal/core/heap.h"
#include "shoal/core/host_space.h"

namespace py = pybind11;

namespace shoal::python {

void set_python_error(const Error& error) {
  const auto exception = py::module_::import("shoal.errors").attr("from_core")(name(error.code()), exit_code(error.code()), error.what());
  PyErr_SetObject(py::type::handle_of(exception).ptr(), exception.ptr());
}

}  // namespace shoal::python

PYBIND11_MODULE(_C, module) {
  using namespace shoal::python;
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const shoal::Error& error) {
      set_python_error(error);
    }
  });
  module.def("keep_freed_memory", &shoal::keep_freed_memory);
  // Of this process: "", or what it could not do. fork_server.py
  module.def("enter_host_space", [](const std::string& network, const std::string& name) {
    const char* step = shoal::enter({network, name});
    return step ? step + std::string(": ") + std::strerror(errno) : std::string();
  });
  bind_session(module);
  bind_training(module);
  bind_events(module);
  bind_backend(module);
  bind_models(module);
  bind_regions(module);
  bind_tables(module);
  bind_learners(module);
  bind_topics(module);
  bind_networks(module);
  bind_programs(module);
}
