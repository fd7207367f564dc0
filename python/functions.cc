// Python functions that servers of tables run (shoal/table/functions.h).
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <memory>
#include <string>

#include "functions.h"
#include "shoal/core/error.h"

namespace py = pybind11;

namespace shoal::python {
namespace {

template <class T>
py::array_t<T> copy_of(std::span<const T> values, std::vector<py::ssize_t> shape) {
  py::array_t<T> array(std::move(shape));
  std::ranges::copy(values, array.mutable_data());
  return array;
}

template <class T>
std::vector<table::Wide<T>> call(const py::function& function, const table::Block<T>& block) {
  using Wide = table::Wide<T>;
  const auto count = static_cast<py::ssize_t>(block.keys.size()), width = static_cast<py::ssize_t>(block.width());
  const auto rows = copy_of<T>(block.rows, {count, width});
  const auto argument = copy_of<Wide>(block.argument, {static_cast<py::ssize_t>(block.argument.size())});
  const py::object result = function(copy_of<table::Key>(block.keys, {count}), rows, argument);
  std::copy_n(rows.data(), rows.size(), block.rows.begin());
  if (result.is_none()) return {};
  const py::array_t<Wide, py::array::c_style | py::array::forcecast> values(result);
  if (values.ndim() == 0 || values.shape(0) != count) {
    const std::string shape = py::str(values.attr("shape"));
    throw Error(Code::invalid_argument, "returned values of shape " + shape + " for " + std::to_string(count) + " rows");
  }
  return {values.data(), values.data() + values.size()};
}

}  // namespace

template <class T>
table::Function<T> on_servers(py::function function) {
  const auto release = [](py::function* held) {    // on any thread
    const py::gil_scoped_acquire acquire;
    delete held;
  };
  const std::shared_ptr<py::function> held(new py::function(std::move(function)), release);
  return [held](const table::Block<T>& block) {
    const py::gil_scoped_acquire acquire;
    try {
      return call<T>(*held, block);
    } catch (const py::error_already_set& error) {
      const std::string what = error.what();
      throw Error(Code::invalid_argument, what.substr(0, what.find('\n')));
    }
  };
}

template table::Function<float> on_servers(py::function);
template table::Function<double> on_servers(py::function);
template table::Function<std::int32_t> on_servers(py::function);
template table::Function<std::int64_t> on_servers(py::function);

}  // namespace shoal::python
