// The parts of the module shoal._C; each file binds one of them. All functions hold the GIL at entry.
#pragma once

#include <pybind11/pybind11.h>

#include "shoal/core/error.h"

namespace shoal::python {

using Released = pybind11::call_guard<pybind11::gil_scoped_release>;  // of functions that wait, or compute for long

// Sets Python's error indicator to the shoal.Error (or shoal.PeerLost) that says the same.
void set_python_error(const Error& error);

void bind_session(pybind11::module_& module);   // session.cc: the job and its small collectives
void bind_training(pybind11::module_& module);  // training.cc: data_parallel
void bind_events(pybind11::module_& module);    // events.cc: what the Python half adds to the event stream
void bind_backend(pybind11::module_& module);   // backend.cc: the c10d process group
void bind_models(pybind11::module_& module);    // models.cc: the zoo
void bind_regions(pybind11::module_& module);   // regions.cc: tensors that others put into
void bind_tables(pybind11::module_& module);    // tables.cc: shared rows with clocks
void bind_learners(pybind11::module_& module);  // learners.cc: learners without PyTorch, over arrays
void bind_topics(pybind11::module_& module);     // topics.cc: topic models, over matrices and lists of words
void bind_networks(pybind11::module_& module);   // networks.cc: topologies, and what would happen on them: plans foreseen, scenarios simulated
void bind_programs(pybind11::module_& module);   // program.cc: collectives as programs, made for networks

}  // namespace shoal::python
