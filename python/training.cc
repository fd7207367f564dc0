#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "bindings.h"
#include "shoal/exchange/way.h"
#include "shoal/nn/alone.h"
#include "shoal/nn/data_parallel.h"
#include "shoal/nn/local_rounds.h"

namespace py = pybind11;

namespace shoal::python {
namespace {

using nn::DataParallel;
using nn::LocalRounds;
using nn::Session;

// Autograd carries a python_error unchanged to the caller of backward(); any other exception becomes a RuntimeError. With Python's lock.
[[noreturn]] void throw_through_autograd() {
  python_error thrown;
  thrown.persist();
  throw thrown;
}

void raise_through_autograd(const Error& error) {
  const py::gil_scoped_acquire gil;
  set_python_error(error);
  throw_through_autograd();
}

// Calls into Python, from whatever thread; what it raises comes out at the caller of backward(), or here.
auto calling(py::function function) {
  return [shared = std::make_shared<py::function>(std::move(function))](auto... arguments) {
    const py::gil_scoped_acquire gil;
    try {
      (*shared)(arguments...);
    } catch (py::error_already_set& error) {
      if (torch::autograd::get_current_graph_task_id() == -1) throw;
      error.restore();
      throw_through_autograd();
    }
  };
}

using Named = std::vector<std::pair<std::string, at::Tensor>>;

std::vector<nn::NamedTensor> named_tensors(const Named& tensors) {
  std::vector<nn::NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back({name, tensor});
  return named;
}

std::optional<exchange::ExchangePlan> plan_in(const std::optional<std::string>& text, const std::string& where) {
  return text ? std::optional(exchange::plan_from_json(*text, where)) : std::nullopt;
}

std::unique_ptr<DataParallel> make(Session& session, const Named& parameters, const std::vector<at::Tensor>& buffers,
                                   const std::map<std::size_t, bool>& tables, const std::string& choice,
                                   const std::optional<std::string>& saved, py::function step_the_rest,
                                   py::function whole_gradients, py::function iteration_begins, py::function take_over_state, const std::vector<c10::DeviceIndex>& pretend_devices) {
  DataParallel::Options options;
  options.raise = raise_through_autograd;
  for (const auto& [parameter, sparse] : tables) options.tables.push_back({parameter, sparse});
  options.choice = exchange::parse_choice(choice, "plan");
  options.plan = plan_in(saved, choice);
  options.pretend_devices = pretend_devices;
  options.step_the_rest = calling(std::move(step_the_rest));
  options.whole_gradients = calling(std::move(whole_gradients));
  options.iteration_begins = calling(std::move(iteration_begins));
  options.take_over_state = calling(std::move(take_over_state));
  return std::make_unique<DataParallel>(session, named_tensors(parameters), buffers, std::move(options));
}

// Whether a plan was asked for by the name of such a way, for all tensors or some.
template <class Which>
bool names_way(const std::string& plan, Which which) {
  const auto choice = exchange::parse_choice(exchange::plan_from_json(plan, "plan").choice, "plan");
  const auto is_one = [&](const std::string& way) { return !way.empty() && which(*exchange::way_named(way)); };
  return is_one(choice.way) || std::any_of(choice.overrides.begin(), choice.overrides.end(), [&](const auto& o) { return is_one(o.way); });
}

constexpr const char* kOfCheckpoint = "the plan of the checkpoint";

std::unique_ptr<LocalRounds> make_rounds(Session& session, const Named& parameters, const Named& buffers,
                                         const std::string& choice, const std::optional<std::string>& saved) {
  return std::make_unique<LocalRounds>(session, named_tensors(parameters), named_tensors(buffers),
                                       LocalRounds::Options{exchange::parse_choice(choice, "plan"), plan_in(saved, choice)});
}

// How many samples a forward pass is given: the first dimension of its first tensor, 1 where there is none.
double samples_in(const py::tuple& args, const py::dict& kwargs) {
  const auto rows = [](const py::handle& value) -> std::optional<double> {
    if (!THPVariable_Check(value.ptr())) return std::nullopt;
    const at::Tensor& tensor = THPVariable_Unpack(value.ptr());
    return tensor.dim() > 0 ? static_cast<double>(tensor.size(0)) : 1.0;
  };
  for (const auto& value : args) {
    if (const auto found = rows(value)) return *found;
  }
  for (const auto& named : kwargs) {
    if (const auto found = rows(named.second)) return *found;
  }
  return 1;
}

}  // namespace

void bind_training(py::module_& module) {
  module.def("samples_in", &samples_in, py::arg("args"), py::arg("kwargs"));
  // step_begins is the optimizer's hook itself: it takes what it hands to hooks.
  py::class_<nn::Alone>(module, "Alone")
      .def(py::init())
      .def("forward_begins", &nn::Alone::forward_begins, py::arg("samples"))
      .def("forward_ends", &nn::Alone::forward_ends, py::arg("output"))
      .def("step_begins", [](nn::Alone& self, const py::args&) { self.step_begins(); })
      .def("step_ends", &nn::Alone::step_ends);
  // The grammar of `plan=` (shoal/exchange/choice.h): the file of a saved plan, "" where it names none.
  module.def(
      "plan_file", [](const std::string& choice, const std::string& where) { return exchange::parse_choice(choice, where).file; },
      py::arg("choice"), py::arg("where"));
  // Of each of these tensors, whether its way by the choice, or by the plan that is replayed, does what an optimizer's momentum does.
  module.def(
      "have_momentum",
      [](const std::string& choice, const std::optional<std::string>& saved, const std::vector<std::string>& names) {
        const auto parsed = exchange::parse_choice(choice, "plan");
        std::map<std::string, std::string> replayed;
        if (saved) {
          const auto plan = exchange::plan_from_json(*saved, choice);
          for (const auto& unit : plan.units) {
            for (const auto t : unit.tensors) replayed[plan.tensors[t].name] = unit.way;
          }
        }
        std::vector<bool> have;
        for (const auto& name : names) {
          const auto* const own = parsed.override_of(name);
          const std::string way = saved ? replayed[name] : own ? *own : parsed.way;
          have.push_back(!way.empty() && exchange::way_named(way)->has_momentum());
        }
        return have;
      },
      py::arg("choice"), py::arg("saved"), py::arg("names"));
  // Whether members take steps of their own by the choice, or the plan that is replayed.
  module.def(
      "has_rounds",
      [](const std::string& choice, const std::optional<std::string>& saved) {
        const auto by = saved ? exchange::plan_from_json(*saved, choice).choice : choice;
        return exchange::parse_choice(by, "plan").rounds.has_value();
      },
      py::arg("choice"), py::arg("saved"));
  // The consistency at which parameters are served, where the choice is ps, and how they travel: "essp:2", "bsp+int8".
  module.def(
      "consistency_of",
      [](const std::string& choice) -> std::optional<std::string> {
        const exchange::Choice chosen = exchange::parse_choice(choice, "plan");
        if (!chosen.served) return std::nullopt;
        return table::name(*chosen.served) + (chosen.encoding == table::Encoding::none ? "" : std::string("+") + table::name(chosen.encoding));
      },
      py::arg("choice"));
  // Whether the plan asks that layers, or parameters, be divided among members.
  module.def("wants_strips", [](const std::string& plan) { return names_way(plan, [](const exchange::Way& way) { return way.groups() > 0; }); }, py::arg("plan"));
  module.def("wants_parts", [](const std::string& plan) { return names_way(plan, [](const exchange::Way& way) { return way.owned(); }); }, py::arg("plan"));
  // A plan that nobody replays, because the member is alone, is read all the same: the mistake shows where it was made.
  module.def(
      "check_plan", [](const std::string& plan, const std::string& file) { exchange::plan_from_json(plan, file); }, py::arg("plan"),
      py::arg("file"));
  py::class_<DataParallel>(module, "DataParallel")
      .def(py::init(&make), py::arg("session"), py::arg("parameters"), py::arg("buffers"), py::arg("tables"), py::arg("choice"),
           py::arg("saved"), py::arg("step_the_rest"), py::arg("whole_gradients"), py::arg("iteration_begins"), py::arg("take_over_state"), py::arg("pretend_devices"),
           py::keep_alive<1, 2>())
      .def("set_first_use", &DataParallel::set_first_use)
      .def("move_on", &DataParallel::move_on, Released())
      .def("forward_begins", &DataParallel::forward_begins)
      .def("forward_ends", &DataParallel::forward_ends)
      .def("watch", &DataParallel::watch)
      .def("layer", &DataParallel::layer, py::arg("number"))
      .def("divided_linear", &DataParallel::divided_linear, py::arg("number"), py::arg("x"), py::arg("weight"), py::arg("bias"),
           py::arg("rows"), Released())
      .def("count_rows", &DataParallel::count_rows, py::arg("number"), py::arg("rows"), Released())
      .def("set_divisible", &DataParallel::set_divisible, py::arg("numbers"))
      .def_property_readonly("divided", &DataParallel::divided)
      .def("set_by_element", &DataParallel::set_by_element, py::arg("numbers"))
      .def("is_owned", &DataParallel::is_owned, py::arg("number"))
      // Of a divided weight: the ranks of this member's group, and the row at which each one's strip begins, and their end. Of a parameter in parts: all
      // ranks, and elements.
      .def("strips",
           [](const DataParallel& self, std::size_t number, net::Rank rank) {
             std::vector<std::uint64_t> begins;
             if (self.is_owned(number)) {
               const auto parts = self.parts(number);
               std::vector<std::uint32_t> all(parts.ranks);
               std::iota(all.begin(), all.end(), 0u);
               for (std::uint32_t r = 0; r <= parts.ranks; ++r) begins.push_back(parts.first(r));
               return std::make_pair(all, begins);
             }
             const auto strips = self.strips(number);
             for (std::uint32_t place = 0; place <= strips.members(); ++place) begins.push_back(strips.first(place));
             return std::make_pair(strips.group_of(rank), begins);
           },
           py::arg("number"), py::arg("rank"))
      .def("give_back", &DataParallel::give_back, py::arg("number"), Released())
      .def("returned", &DataParallel::returned, py::arg("number"), Released())
      .def(
          "own_mean",
          [](const DataParallel& self, std::size_t number) {
            const auto mean = self.own_mean(number);
            return mean.defined() ? std::optional(mean) : std::nullopt;
          },
          py::arg("number"))
      .def("undivide", &DataParallel::undivide, Released())
      .def_property_readonly("synchronizes", &DataParallel::synchronizes)
      .def("set_synchronize", &DataParallel::set_synchronize)
      .def("set_samples", &DataParallel::set_samples)
      .def("weights", &DataParallel::weights, Released())
      .def("set_asks", &DataParallel::set_asks)
      .def("asked", &DataParallel::asked)
      .def(
          "continue_from",
          [](DataParallel& self, std::uint64_t iterations, const std::optional<std::string>& plan) {
            self.continue_from(iterations, plan_in(plan, kOfCheckpoint));
          },
          py::arg("iterations"), py::arg("plan"), Released())
      // (iterations before this run, iteration, iterations that are measured, whether the plan is final, the plan)
      .def("course",
           [](const DataParallel& self) {
             const auto course = self.course();
             return std::make_tuple(course.iterations_before, course.iteration, course.measured_iterations, course.plan_is_final, exchange::to_json(course.plan));
           })
      .def("set_buffers", &DataParallel::set_buffers, py::arg("buffers"))
      .def_property_readonly("common_buffers", &DataParallel::common_buffers)
      .def(
          "take_up",
          [](DataParallel& self, const std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, bool, std::string>& told) {
            const auto& [before, iteration, measured, final_plan, plan] = told;
            self.take_up({before, iteration, measured, final_plan, exchange::plan_from_json(plan, "the others' plan")});
          },
          py::arg("course"), Released())
      .def("kept", &DataParallel::kept)
      .def("put_back", &DataParallel::put_back, py::arg("kept"))
      .def_property_readonly("is_open", &DataParallel::is_open)
      .def("install", &DataParallel::install, Released())
      .def_property_readonly("holds_pairs", &DataParallel::holds_pairs)
      .def("finish", &DataParallel::finish, Released())
      .def("step_begins", &DataParallel::step_begins, Released())
      .def("arrived", &DataParallel::arrived)
      .def("settle", &DataParallel::settle, Released())
      .def("update_begins", &DataParallel::update_begins)
      .def("update_ends", &DataParallel::update_ends)
      .def("commit", &DataParallel::commit, Released())
      .def("idle_iteration", &DataParallel::idle_iteration, Released())
      .def("serve", &DataParallel::serve, Released())
      .def("dismiss_servers", &DataParallel::dismiss_servers, Released())
      .def("end", &DataParallel::end, Released())
      .def("take_over_from", &DataParallel::take_over_from)
      .def("communication", [](const DataParallel& self) {
        const auto sums = self.communication();
        return std::make_pair(sums.whole, sums.exposed);
      })
      .def_property_readonly("iterations_taken", &DataParallel::iterations_taken)
      .def_property_readonly("plan_is_final", &DataParallel::plan_is_final)
      .def_property_readonly("plans", &DataParallel::plans)
      .def_property_readonly("fits", &DataParallel::fits)
      .def("ask_for_fit", &DataParallel::ask_for_fit)
      .def("aliased", &DataParallel::aliased)
      .def("name_of", [](const DataParallel& self, std::size_t i) { return self.plan().tensors.at(i).name; })
      .def_property_readonly("needs_whole_step", &DataParallel::needs_whole_step)
      .def_property_readonly("by_priority", [](const DataParallel& self) { return self.plan().order == exchange::Order::priority; })
      .def("plan", [](const DataParallel& self) { return exchange::to_json(self.plan()); });
  py::class_<LocalRounds::Progress>(module, "Progress")
      .def(py::init([](std::uint64_t synchronised, std::uint64_t steps, const std::map<std::string, at::Tensor>& shared,
                       const std::map<std::string, at::Tensor>& own) {
             return LocalRounds::Progress{synchronised, steps, shared, own};
           }),
           py::arg("synchronised"), py::arg("steps"), py::arg("shared"), py::arg("own"))
      .def_readonly("synchronised", &LocalRounds::Progress::synchronised)
      .def_readonly("steps", &LocalRounds::Progress::steps)
      .def_readonly("shared", &LocalRounds::Progress::shared)
      .def_readonly("own", &LocalRounds::Progress::own);
  py::class_<LocalRounds>(module, "LocalRounds")
      .def(py::init(&make_rounds), py::arg("session"), py::arg("parameters"), py::arg("buffers"), py::arg("choice"),
           py::arg("saved"), py::keep_alive<1, 2>())
      .def("count", &LocalRounds::count)
      .def("set_samples", &LocalRounds::set_samples)
      .def("set_asks", &LocalRounds::set_asks)
      .def("asked", &LocalRounds::asked)
      .def("step_taken", &LocalRounds::step_taken, Released())
      .def("idle_round", &LocalRounds::idle_round, Released())
      .def("hold", &LocalRounds::hold, Released())
      .def("begin_anew", &LocalRounds::begin_anew, Released())
      .def("take_over_from", &LocalRounds::take_over_from)
      .def_property_readonly("idled", &LocalRounds::idled)
      .def("old_values", &LocalRounds::old_values)
      .def("progress", &LocalRounds::progress, Released())
      .def(
          "continue_from",
          [](LocalRounds& self, const LocalRounds::Progress& progress, const std::optional<std::string>& plan) {
            self.continue_from(progress, plan_in(plan, kOfCheckpoint));
          },
          py::arg("progress"), py::arg("plan"), Released())
      .def("communication",
           [](const LocalRounds& self) {
             const auto sums = self.communication();
             return std::make_pair(sums.whole, sums.exposed);
           })
      .def_property_readonly("synchronised", &LocalRounds::synchronised)
      .def_property_readonly("plan_is_final", &LocalRounds::plan_is_final)
      .def("plan", [](const LocalRounds& self) { return exchange::to_json(self.plan()); });
}

}  // namespace shoal::python
