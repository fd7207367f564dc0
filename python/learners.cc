// Learners without PyTorch (shoal/learn) over arrays: what shoal.learners is made of. Rows come as compressed sparse rows, all of them on all members.
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <functional>
#include <memory>
#include <optional>

#include "arrays.h"
#include "bindings.h"
#include "shoal/learn/centers.h"
#include "shoal/learn/dictionary.h"
#include "shoal/learn/k_means.h"
#include "shoal/learn/linear.h"
#include "shoal/learn/linear_model.h"
#include "shoal/learn/metric.h"
#include "shoal/learn/model_folder.h"
#include "shoal/learn/sdca.h"
#include "shoal/learn/sparse_coding.h"
#include "shoal/learn/whole_factors.h"
#include "shoal/nn/session.h"
#include "shoal/table/shares.h"

namespace py = pybind11;

namespace shoal::python {
namespace {

using Begin = std::function<std::unique_ptr<learn::Learner>(net::Transport&, const table::TablesOptions&)>;

data::SparseRows rows_from(const Array<std::uint64_t>& offsets, const Array<std::uint32_t>& columns, const Array<float>& values, const Array<double>& labels,
                           std::uint32_t width) {
  data::SparseRows rows;
  rows.offsets = copied(offsets);
  rows.columns = copied(columns);
  rows.values = copied(values);
  rows.labels = copied(labels);
  rows.width = width;
  const bool fits = rows.offsets.size() == rows.labels.size() + 1 && rows.offsets.front() == 0 && rows.offsets.back() == rows.columns.size() &&
                    rows.columns.size() == rows.values.size();
  if (!fits) throw Error(Code::invalid_argument, "offsets, columns, values and labels do not fit each other", "rows");
  return rows;
}

py::array_t<float> array_from(const learn::Tensor& tensor) {
  py::array_t<float> array(std::vector<py::ssize_t>(tensor.shape.begin(), tensor.shape.end()));
  std::copy(tensor.values.begin(), tensor.values.end(), array.mutable_data());
  return array;
}

learn::Tensor tensor_from(const Array<float>& array) {
  return {std::vector<std::uint64_t>(array.shape(), array.shape() + array.ndim()), copied(array)};
}

py::dict arrays_from(const learn::Tensors& tensors) {
  py::dict arrays;
  for (const auto& [name, tensor] : tensors) arrays[py::str(name)] = array_from(tensor);
  return arrays;
}

learn::Tensors tensors_from(const std::map<std::string, Array<float>>& arrays) {
  learn::Tensors tensors;
  for (const auto& [name, array] : arrays) tensors.emplace(name, tensor_from(array));
  return tensors;
}

std::optional<learn::Tensors> first_from(const std::optional<std::map<std::string, Array<float>>>& arrays) {
  return arrays ? std::optional(tensors_from(*arrays)) : std::nullopt;
}

// Learns, from `first` values if there are any, until it has converged or `epochs` are done; `after(figures)` hears of each epoch, and whoever interrupts Python is heard then.
// Returns rank 0's tensors, and nothing elsewhere.
py::dict learnt(nn::Session& session, const Begin& begin, const std::optional<learn::Tensors>& first, unsigned epochs, const py::object& after) {
  std::unique_ptr<learn::Learner> learner;
  learn::Tensors model;
  {
    const py::gil_scoped_release release;
    const std::uint16_t channel = session.new_channel(), meeting = session.new_channel();
    const auto tables = table::options_here(session.job().transport(), session.patience(), channel, meeting);
    learner = begin(session.job().transport(), tables);
    learner->restore(0, {});
    if (first) learner->begin_with(*first);
  }
  for (unsigned number = 1; number <= epochs; ++number) {
    learn::Epoch epoch;
    {
      const py::gil_scoped_release release;
      epoch = learner->learn([](double) {});
    }
    py::dict figures;
    for (const auto& [name, value] : epoch.figures) figures[py::str(name)] = value;
    after(figures);
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (epoch.converged) break;
  }
  const py::gil_scoped_release release;
  model = learner->model();
  learner.reset();
  const py::gil_scoped_acquire acquire;
  return arrays_from(model);
}

learn::StepSize step_from(const py::dict& options) { return {options["step"].cast<double>(), options["schedule"].cast<std::string>() == "sqrt"}; }

template <class T>
T option(const py::dict& options, const char* name) {
  return options[name].cast<T>();
}

Begin begin_for(nn::Session& session, const std::string& learner, const py::dict& options, const std::shared_ptr<learn::LabelledRows>& rows) {
  const auto consistency = [&] { return table::consistency_from(option<std::string>(options, "consistency")); };
  const auto sharing = [&] {
    learn::Sharing how = learn::sharing_from(option<std::string>(options, "sharing"));
    how.channel = session.new_channel();
    return how;
  };
  const auto seed = option<std::uint64_t>(options, "seed");
  const auto begins = [&rows]<class Learner>(std::type_identity<Learner>, const auto& how) -> Begin {
    return [rows, how](net::Transport& transport, const table::TablesOptions& tables) { return std::make_unique<Learner>(transport, std::move(*rows), how, tables); };
  };
  if (learner == "sgd") {
    return begins(std::type_identity<learn::Linear>(),
                  learn::LinearOptions{step_from(options), option<double>(options, "l2"), option<std::size_t>(options, "batch"), seed, consistency(), sharing()});
  }
  if (learner == "sdca") {
    return begins(std::type_identity<learn::Sdca>(),
                  learn::SdcaOptions{option<double>(options, "l2"), option<double>(options, "gap"), option<std::size_t>(options, "batch"), seed, sharing()});
  }
  if (learner == "k-means") return begins(std::type_identity<learn::KMeans>(), learn::KMeansOptions{option<std::uint32_t>(options, "clusters"), seed});
  if (learner == "dictionary") {
    const learn::DictionaryForm form{option<std::uint32_t>(options, "atoms"), option<double>(options, "l1"), option<bool>(options, "non_negative")};
    return begins(std::type_identity<learn::SparseCoding>(), learn::SparseCodingOptions{form, option<std::size_t>(options, "batch"), seed});
  }
  return begins(std::type_identity<learn::Metric>(),
                learn::MetricOptions{option<std::uint32_t>(options, "dimensions"), step_from(options), option<double>(options, "apart"),
                                     option<std::size_t>(options, "batch"), seed, consistency()});
}

py::dict fit_rows(nn::Session& session, const std::string& learner, const py::dict& options, const data::SparseRows& all, bool labelled, unsigned epochs,
                  const py::object& after, const std::optional<std::map<std::string, Array<float>>>& first) {
  const auto labels = labelled ? learn::Labels::classes : learn::Labels::unused;
  const auto rows = std::make_shared<learn::LabelledRows>(learn::deal_rows(all, session.rank(), session.size(), labels));
  return learnt(session, begin_for(session, learner, options, rows), first_from(first), epochs, after);
}

// Returns the mean beside the tensors.
std::pair<py::dict, double> fit_ratings(nn::Session& session, const py::dict& options, const Array<std::uint32_t>& users, const Array<std::uint32_t>& items,
                                        const Array<float>& values, std::uint32_t user_count, std::uint32_t item_count, unsigned epochs, const py::object& after,
                                        const std::optional<std::map<std::string, Array<float>>>& first) {
  data::Triples all;
  all.rows = copied(users);
  all.columns = copied(items);
  all.values = copied(values);
  all.row_count = user_count;
  all.column_count = item_count;
  const auto ratings = std::make_shared<learn::Ratings>(learn::deal_ratings(std::move(all), session.rank(), session.size()));
  const learn::FactorizationOptions how{option<std::size_t>(options, "factors"), step_from(options), option<double>(options, "l2"),
                                        option<std::size_t>(options, "batch"), option<std::uint64_t>(options, "seed"), option<bool>(options, "biases"),
                                        option<bool>(options, "non_negative"), table::consistency_from(option<std::string>(options, "consistency")),
                                        learn::missing_from(option<std::string>(options, "missing"))};
  const double mean = learn::mean_of(*ratings, how.missing);
  const Begin begin = [ratings, how](net::Transport& transport, const table::TablesOptions& tables) {
    return learn::factor_learner(transport, std::move(*ratings), how, tables);
  };
  return {learnt(session, begin, first_from(first), epochs, after), mean};
}

// Number of the nearest center of each row, and the squared distance from it.
std::pair<py::array_t<std::int32_t>, py::array_t<double>> nearest_centers(const Array<float>& values, const data::SparseRows& rows) {
  const learn::Tensor tensor = tensor_from(values);
  learn::Centers centers(static_cast<std::uint32_t>(tensor.shape.at(0)), static_cast<std::uint32_t>(tensor.shape.at(1)));
  centers.set(tensor);
  py::array_t<std::int32_t> clusters(static_cast<py::ssize_t>(rows.size()));
  py::array_t<double> distances(static_cast<py::ssize_t>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [cluster, distance] = centers.nearest(rows[i]);
    clusters.mutable_data()[i] = static_cast<std::int32_t>(cluster);
    distances.mutable_data()[i] = distance;
  }
  return {clusters, distances};
}

// A code a row, and the mean of the objective.
std::pair<py::array_t<float>, double> sparse_codes(const Array<float>& values, double l1, bool non_negative, const data::SparseRows& rows) {
  const learn::Tensor tensor = tensor_from(values);
  const auto atoms = static_cast<std::uint32_t>(tensor.shape.at(0));
  learn::Dictionary dictionary({atoms, l1, non_negative}, static_cast<std::uint32_t>(tensor.shape.at(1)));
  dictionary.set(tensor);
  py::array_t<float> codes(std::vector<py::ssize_t>{static_cast<py::ssize_t>(rows.size()), atoms});
  std::fill(codes.mutable_data(), codes.mutable_data() + codes.size(), 0.0f);
  double objective = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) objective += dictionary.code(rows[i], {codes.mutable_data() + i * atoms, atoms}).objective;
  return {codes, objective / static_cast<double>(rows.size())};
}

// A model's folder as the program leaves it. config: JSON.
void keep_model(const std::string& path, const std::string& config, const std::map<std::string, std::vector<std::string>>& names,
                const std::map<std::string, Array<float>>& arrays, unsigned epochs) {
  learn::ModelFolder folder(path);
  folder.begin(learn::Json::parse(config));
  for (const auto& [name, words] : names) {
    data::Names all;
    for (const auto& word : words) all.number(word);
    folder.write_names(name, all);
  }
  learn::Epoch epoch;
  epoch.number = epochs;
  folder.add(epoch, tensors_from(arrays));
}

// Configuration (JSON) and tensors of a folder, and the names of classes if it has any.
py::tuple kept_model(const std::string& path, const std::string& learner) {
  const learn::ModelFolder folder(path);
  const std::string config = folder.config(learner).dump();
  std::vector<std::string> classes;
  const auto names = folder.names("classes");
  for (std::uint32_t number = 0; names && number < names->size(); ++number) classes.emplace_back((*names)[number]);
  return py::make_tuple(config, arrays_from(folder.model().tensors), classes);
}

}  // namespace

void bind_learners(py::module_& module) {
  py::class_<data::SparseRows>(module, "Rows").def(py::init(&rows_from), py::arg("offsets"), py::arg("columns"), py::arg("values"), py::arg("labels"), py::arg("width"));
  module.def("fit_rows", &fit_rows);
  module.def("fit_ratings", &fit_ratings);
  module.def("nearest_centers", &nearest_centers);
  module.def("sparse_codes", &sparse_codes);
  module.def("keep_model", &keep_model);
  module.def("kept_model", &kept_model);
  module.def("label_text", &learn::label_text);
}

}  // namespace shoal::python
