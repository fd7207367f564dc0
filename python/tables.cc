#include "shoal/table/tables.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <variant>

#include "bindings.h"
#include "functions.h"
#include "shoal/nn/session.h"
#include "shoal/table/shares.h"
#include "shoal/table/part_file.h"

namespace py = pybind11;

namespace shoal::python {
namespace {

// A session's tables, in the group in which it is now.
struct Tables {
  // The same channels in all groups: who is interrupted as it makes its first makes them again.
  Tables(nn::Session& session, std::uint16_t its_channel, std::uint16_t its_meeting, Tables* before)
      : channel(its_channel), meeting(its_meeting),
        groups(before ? before->groups : Groups{}), tables(transport_of(session), options(session), before ? &before->tables : nullptr) {}

  using Groups = std::vector<std::shared_ptr<const void>>;
  const std::uint16_t channel, meeting;
  Groups groups;            // those before, too: handles of tables that were not opened again may be used, and say so
  table::Tables tables;

 private:
  net::Transport& transport_of(nn::Session& session) {
    groups.push_back(session.lease());
    return session.job().transport();
  }
  table::TablesOptions options(nn::Session& session) const {
    auto options = table::options_here(session.job().transport(), session.patience(), channel, meeting, session.job().place().generation == 0);
    if (session.servers() > 0) table::serve_beside(options, session.workers(), session.servers());
    return options;
  }
};

using Keys = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;
template <class T>
using Values = py::array_t<T, py::array::c_style | py::array::forcecast>;

std::span<const table::Key> keys_of(const Keys& keys) { return {keys.data(), static_cast<std::size_t>(keys.size())}; }

template <class T>
std::span<const T> rows_of(const Values<T>& values, const Keys& keys, const table::Table<T>& table) {
  const auto expected = static_cast<std::size_t>(keys.size()) * table.width();
  if (static_cast<std::size_t>(values.size()) == expected) return {values.data(), expected};
  const std::string what = std::to_string(values.size()) + " values for " + std::to_string(keys.size()) + " rows of " + std::to_string(table.width());
  throw Error(Code::invalid_argument, what, "table " + table.spec().name);
}

// Memory of `view` as an array that nobody may write, and that keeps it.
template <class T>
py::array_t<T> read_only(const py::object& view, const std::vector<std::size_t>& shape, const T* memory) {
  py::array_t<T> array(shape, memory, view);
  py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

template <class T>
void bind_view(py::module_& module, const char* name) {
  using View = table::View<T>;
  py::class_<View>(module, name)
      .def("__len__", &View::size)
      .def("__getitem__",
           [](const py::object& self, const py::object& index) {
             const auto& view = self.cast<const View&>();
             const auto rows = static_cast<py::ssize_t>(view.size());
             if (!PyIndex_Check(index.ptr())) throw py::type_error("a view gives one row, view[3], or all of them, np.asarray(view)");
             py::ssize_t row = PyNumber_AsSsize_t(index.ptr(), PyExc_IndexError);
             if (row == -1 && PyErr_Occurred()) throw py::error_already_set();
             if (row < 0) row += rows;
             if (row < 0 || row >= rows) {
               throw py::index_error("a view of " + std::to_string(rows) + " rows has none that is number " + std::string(py::str(index)));
             }
             return read_only(self, {view.width()}, view[static_cast<std::size_t>(row)].data());
           })
      .def("__array__",
           [](const py::object& self, const py::object& dtype, std::optional<bool> copy) -> py::object {
             const auto& view = self.cast<const View&>();
             py::array_t<T> all;
             if (view.is_one_piece() && view.size() > 0 && !copy.value_or(false)) {
               all = read_only(self, {view.size(), view.width()}, view.rows()[0]);
             } else if (copy.value_or(true)) {
               all = py::array_t<T>({view.size(), view.width()});
               T* into = all.mutable_data();
               const py::gil_scoped_release release;
               for (const T* row : view.rows()) into = std::copy_n(row, view.width(), into);
             } else {
               throw py::value_error("these rows do not lie one behind the other: as one array they are a copy");
             }
             if (dtype.is_none() || all.dtype().equal(py::dtype::from_args(dtype))) return all;
             if (!copy.value_or(true)) throw py::value_error("these rows as another type are a copy");
             return all.attr("astype")(dtype, py::arg("copy") = false);
           },
           py::arg("dtype") = py::none(), py::arg("copy") = py::none())
      .def_property_readonly("age",
                             [](const py::object& self) {
                               const auto ages = self.cast<const View&>().ages();
                               return read_only(self, {ages.size()}, ages.data());
                             })
      .def_property_readonly("clock", &View::clock)
      .def_property_readonly("copied", &View::copied);
}

template <class T>
void bind_table(py::module_& module, const char* name) {
  using Table = table::Table<T>;
  py::class_<Table>(module, name)
      .def_property_readonly("clock", &Table::clock)
      .def("telemetry",
           [](const Table& table) {
             const table::Telemetry met = table.telemetry();
             const auto by_cause = [](const auto& values) {
               py::dict causes;
               for (std::size_t cause = 0; cause < table::kCauses; ++cause) causes[table::word(static_cast<table::Cause>(cause))] = values[cause];
               return causes;
             };
             py::dict said, heard, all;
             said["increments"] = met.bytes.added;
             said["requests"] = met.bytes.asked;
             said["other"] = met.bytes.other;
             heard["rows"] = met.bytes.rows;
             heard["other"] = met.bytes.told;
             all["behind"] = std::vector<std::uint64_t>(met.behind.begin(), met.behind.end());
             std::vector<double> below;
             for (std::size_t span = 0; span < table::Telemetry::kSpans; ++span) below.push_back(table::Telemetry::seconds_below(span));
             all["old"] = std::vector<std::uint64_t>(met.old.begin(), met.old.end());
             all["old_below"] = below;
             all["waited"] = by_cause(met.waited);
             all["waits"] = by_cause(met.waits);
             all["said"] = said;
             all["heard"] = heard;
             all["unsubscribed"] = met.unsubscribed;
             all["dropped"] = met.dropped;
             all["snapshots"] = met.bytes.saved;
             all["handed_over"] = met.bytes.given;
             all["taken_over"] = met.bytes.taken;
             return all;
           })
      .def("holders", &Table::holders)
      .def("move", &Table::move, Released())
      .def("read_into",
           [](Table& table, const Keys& keys, py::array_t<T, py::array::c_style>& into) {
             const std::span<T> rows(into.mutable_data(), rows_of<T>(into, keys, table).size());
             const py::gil_scoped_release release;
             return table.read(keys_of(keys), rows);
           },
           py::arg("keys"), py::arg("into").noconvert())
      .def("read",
           [](Table& table, const Keys& keys) {
             std::vector<py::ssize_t> shape(keys.shape(), keys.shape() + keys.ndim());
             shape.push_back(static_cast<py::ssize_t>(table.width()));
             py::array_t<T> values(shape);
             const std::span<T> into(values.mutable_data(), static_cast<std::size_t>(values.size()));
             table::Clock age = 0;
             {
               const py::gil_scoped_release release;
               age = table.read(keys_of(keys), into);
             }
             return std::pair(values, age);
           })
      .def("view",
           [](Table& table, const Keys& keys) {
             const py::gil_scoped_release release;
             return table.view(keys_of(keys));
           })
      .def("intend", [](Table& table, const Keys& keys, std::optional<table::Clock> clocks) { table.intend(keys_of(keys), clocks); })
      .def("add",
           [](Table& table, const Keys& keys, const Values<T>& values) {
             const auto rows = rows_of(values, keys, table);
             const py::gil_scoped_release release;
             table.add(keys_of(keys), rows);
           })
      .def("assign",
           [](Table& table, const Keys& keys, const Values<T>& values) {
             const auto rows = rows_of(values, keys, table);
             const py::gil_scoped_release release;
             table.assign(keys_of(keys), rows);
           })
      .def("fetch",
           [](Table& table, const Keys& keys) {
             py::array_t<T> rows({static_cast<std::size_t>(keys.size()), table.full_width()});
             const std::span<T> into(rows.mutable_data(), static_cast<std::size_t>(rows.size()));
             const py::gil_scoped_release release;
             table.fetch(keys_of(keys), into);
             return rows;
           })
      .def("put",
           [](Table& table, const Keys& keys, const Values<T>& rows) {
             if (static_cast<std::size_t>(rows.size()) != static_cast<std::size_t>(keys.size()) * table.full_width()) {
               throw Error(Code::invalid_argument, "rows of another width", "table " + table.spec().name);
             }
             const std::span<const T> from(rows.data(), static_cast<std::size_t>(rows.size()));
             const py::gil_scoped_release release;
             table.put(keys_of(keys), from);
           })
      .def("define", [](Table& table, Tables& of, const std::string& function,
                        py::function what) { of.tables.define<T>(table.spec().name, function, on_servers<T>(std::move(what))); })
      .def("call",
           [](Table& table, const std::string& function, const std::optional<Keys>& keys, const Values<table::Wide<T>>& argument) {
             const std::span<const table::Wide<T>> numbers(argument.data(), static_cast<std::size_t>(argument.size()));
             table::Called<T> called;
             {
               const py::gil_scoped_release release;
               called = table.call(function, keys ? keys_of(*keys) : std::span<const table::Key>{}, numbers);
             }
             return std::pair(py::array_t<table::Wide<T>>(static_cast<py::ssize_t>(called.values.size()), called.values.data()), called.clock);
           })
      .def("rule", [](Table& table, const std::string& rule) { table.rule(table::rule_from(rule)); })
      .def("snapshot_begin", &Table::snapshot_begin, Released())
      .def("restore", &Table::restore, Released())
      .def_property_readonly("dropped", &Table::dropped)
      .def("tick", &Table::tick, Released())
      .def("switch_to",
           [](Table& table, const std::string& consistency) {
             const table::Consistency next = table::consistency_from(consistency);
             const py::gil_scoped_release release;
             table.switch_to(next);
           })
      .def_property_readonly("consistency", [](const Table& table) { return table::name(table.consistency()); })
      .def("arrive", &Table::arrive, Released())
      .def("meet", &Table::meet, Released());
}

// The rows of one part of a snapshot, as (keys, values).
template <class T>
py::tuple rows_of_part(const std::filesystem::path& folder, const table::Cut& cut, std::uint32_t part) {
  std::vector<Bytes> chunks;
  std::size_t rows = 0;
  const std::size_t row_bytes = table::chunk_row_bytes(cut.spec), stride = (row_bytes - sizeof(table::Key)) / sizeof(T);
  {
    const py::gil_scoped_release release;
    table::PartReader reader(folder, cut, part);
    for (Bytes chunk = reader.next(); !chunk.empty(); chunk = reader.next()) {
      rows += chunk.size() / row_bytes;
      chunks.push_back(chunk);
    }
  }
  py::array_t<std::uint64_t> keys(static_cast<py::ssize_t>(rows));
  py::array_t<T> values({rows, cut.spec.width});
  std::uint64_t* key = keys.mutable_data();
  T* into = values.mutable_data();
  for (const Bytes& chunk : chunks) {
    const std::size_t count = chunk.size() / row_bytes;
    const auto* const from = reinterpret_cast<const std::uint64_t*>(chunk.data());
    key = std::copy_n(from, count, key);
    const T* row = reinterpret_cast<const T*>(from + count);
    for (std::size_t i = 0; i < count; ++i, row += stride) into = std::copy_n(row, cut.spec.width, into);
  }
  return py::make_tuple(keys, values);
}

py::tuple read_part(const table::Cut& cut, const std::string& folder, std::uint32_t part) {
  switch (cut.spec.type) {
    case DType::f64: return rows_of_part<double>(folder, cut, part);
    case DType::i32: return rows_of_part<std::int32_t>(folder, cut, part);
    case DType::i64: return rows_of_part<std::int64_t>(folder, cut, part);
    default: return rows_of_part<float>(folder, cut, part);
  }
}

py::object open(Tables& of, const std::string& name, std::size_t width, const std::string& type, const std::string& consistency,
                const std::string& initial, double a, double b, std::uint64_t seed, const std::string& rule, const std::string& encode,
                const std::string& not_finite) {
  table::Spec spec{name, dtype_from(type), width, table::consistency_from(consistency), {}, table::rule_from(rule), table::encoding_from(encode),
                   table::not_finite_from(not_finite)};
  if (initial == "uniform") spec.initial = table::Initial::uniform(a, b, seed);
  if (initial == "normal") spec.initial = table::Initial::normal(a, b, seed);
  if (initial == "constant") spec.initial = table::Initial::constant(a);
  const auto opened = [&]<class T>(T) {
    py::gil_scoped_release release;
    auto table = of.tables.worker().open<T>(spec);
    const py::gil_scoped_acquire acquire;
    return py::cast(std::move(table));
  };
  switch (spec.type) {
    case DType::f64: return opened(double{});
    case DType::i32: return opened(std::int32_t{});
    case DType::i64: return opened(std::int64_t{});
    default: return opened(float{});
  }
}

}  // namespace

void bind_tables(py::module_& module) {
  py::class_<table::Snapshot>(module, "Snapshot")
      .def_property_readonly("clock", &table::Snapshot::clock)
      .def_property_readonly("is_written", &table::Snapshot::is_written)
      .def("wait", &table::Snapshot::wait, py::call_guard<py::gil_scoped_release>());
  py::class_<table::Cut>(module, "Cut")  // of a snapshot on the disk
      .def_readonly("clock", &table::Cut::clock)
      .def_readonly("parts", &table::Cut::parts)
      .def("read_part", &read_part, py::arg("folder"), py::arg("part"));
  module.def("read_cut", [](const std::string& folder) { return table::read_index(folder); });
  bind_view<float>(module, "ViewF32");
  bind_view<double>(module, "ViewF64");
  bind_view<std::int32_t>(module, "ViewI32");
  bind_view<std::int64_t>(module, "ViewI64");
  bind_table<float>(module, "TableF32");
  bind_table<double>(module, "TableF64");
  bind_table<std::int32_t>(module, "TableI32");
  bind_table<std::int64_t>(module, "TableI64");
  py::class_<Tables, std::shared_ptr<Tables>>(module, "Tables")
      // before: this member's, before others came in place of lost members.
      .def(py::init([](nn::Session& session, std::uint16_t channel, std::uint16_t meeting, Tables* before) {
             const py::gil_scoped_release release;
             return std::shared_ptr<Tables>(new Tables(session, channel, meeting, before), [](Tables* tables) {  // functions that it waits for may need the interpreter
               const py::gil_scoped_release released;
               delete tables;
             });
           }),
           py::arg("session"), py::arg("channel"), py::arg("meeting"), py::arg("before") = py::none(), py::keep_alive<1, 2>())
      .def("leave", [](Tables& of) { of.tables.leave(); }, py::call_guard<py::gil_scoped_release>())
      .def("depart", [](Tables& of) { of.tables.depart(); }, py::call_guard<py::gil_scoped_release>())
      .def("open", &open);
}

}  // namespace shoal::python
