#include "shoal/core/event.h"

#include <pybind11/stl.h>

#include "bindings.h"
#include "shoal/observe/finish.h"
#include "shoal/observe/recorder.h"
#include "shoal/observe/tables.h"

namespace py = pybind11;

namespace shoal::python {
namespace {

using Released = py::call_guard<py::gil_scoped_release>;

py::dict finish_run(const std::string& folder) {
  const auto finished = [&folder] {
    const py::gil_scoped_release release;
    return observe::finish_run(observe::RunFolder::open(folder));
  }();
  py::dict said;
  said["times"] = observe::time_table(finished.account);
  said["tensors"] = observe::tensor_table(finished.account);
  said["links"] = observe::link_table(finished.account);
  said["trace"] = finished.trace.string();
  said["report"] = finished.report.string();
  return said;
}

Instant at(double seconds) { return Instant(std::chrono::duration_cast<Nanoseconds>(Seconds(seconds))); }

}  // namespace

void bind_events(py::module_& module) {
  py::class_<observe::Recorder>(module, "Recorder")
      .def(py::init([](const std::string& folder, int rank, int size) {
             return std::make_unique<observe::Recorder>(observe::RunFolder::open(folder), rank, size);
           }),
           py::arg("folder"), py::arg("rank"), py::arg("size"))
      .def("flush", &observe::Recorder::flush, Released())
      .def("close", &observe::Recorder::close, Released());
  module.def("finish_run", &finish_run, py::arg("folder"));
  // A whole file of the run's folder: readers see the old one or the new one.
  module.def(
      "write_in_run",
      [](const std::string& folder, const std::string& file, const std::string& text) {
        observe::RunFolder::open(folder).write(file, text);
      },
      py::arg("folder"), py::arg("file"), py::arg("text"), Released());
  // The steady clock in seconds: the axis of all events.
  module.def("now", [] { return Seconds(steady_now().time_since_epoch()).count(); });
  module.def("events_enabled", [] { return Events::local().enabled(); });
  module.def(
      "metric",
      [](const std::string& name, double value, std::int64_t step) {
        const auto now = steady_now();
        Events::local().record({EventKind::metric, now, now, step, -1, value, Events::local().intern(name)});
      },
      py::arg("name"), py::arg("value"), py::arg("step") = -1);
  module.def(
      "span",
      [](const std::string& kind, double begin, double end, std::int64_t step, double value) {
        for (const auto known : {EventKind::forward, EventKind::backward, EventKind::optimizer}) {
          if (kind == name(known)) Events::local().record({known, at(begin), at(end), step, -1, value, 0});
        }
      },
      py::arg("kind"), py::arg("begin"), py::arg("end"), py::arg("step"), py::arg("value") = 0);
}

}  // namespace shoal::python
