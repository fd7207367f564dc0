#include "shoal/core/event.h"

#include <pybind11/stl.h>

#include "bindings.h"
#include "shoal/observe/finish.h"
#include "shoal/observe/recorder.h"
#include "shoal/observe/tables.h"
#include "shoal/observe/tensorboard.h"

namespace py = pybind11;

namespace shoal::python {
namespace {


py::dict finish_run(const std::string& folder) {
  const auto finished = [&folder] {
    const py::gil_scoped_release release;
    return observe::finish_run(observe::RunFolder::open(folder));
  }();
  py::dict said;
  said["times"] = observe::time_table(finished.account);
  said["tensors"] = observe::tensor_table(finished.account);
  said["links"] = observe::link_table(finished.account);
  said["why"] = observe::headline(finished.why);
  said["trace"] = finished.trace.string();
  said["report"] = finished.report.string();
  return said;
}

// Into the run's folder and TensorBoard's, whichever there is.
std::unique_ptr<observe::Recorder> make_recorder(const std::optional<std::string>& folder, const std::optional<std::string>& tensorboard,
                                                 int rank, int size) {
  std::vector<std::unique_ptr<observe::EventSink>> sinks;
  if (folder) sinks.push_back(std::make_unique<observe::EventFile>(observe::RunFolder::open(*folder), rank, size));
  if (tensorboard) sinks.push_back(std::make_unique<observe::TensorBoard>(*tensorboard, observe::this_author(rank, size)));
  return std::make_unique<observe::Recorder>(std::move(sinks));
}

}  // namespace

void bind_events(py::module_& module) {
  py::class_<observe::Recorder>(module, "Recorder")
      .def(py::init(&make_recorder), py::arg("folder"), py::arg("tensorboard"), py::arg("rank"), py::arg("size"))
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
  module.def("events_enabled", [] { return Events::local().enabled(); });
  module.def(
      "note",
      [](const std::string& line) {
        const auto now = steady_now();
        Events::local().record({EventKind::note, now, now, -1, -1, 0, Events::local().intern(line)});
      },
      py::arg("line"));
  module.def(
      "metric",
      [](const std::string& name, double value, std::int64_t step) {
        const auto now = steady_now();
        Events::local().record({EventKind::metric, now, now, step, -1, value, Events::local().intern(name)});
      },
      py::arg("name"), py::arg("value"), py::arg("step"));
}

}  // namespace shoal::python
