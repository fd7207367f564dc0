// A matrix with a row for each column of the data, which all members read and change minibatch by minibatch, by sums of outer products. How they
// share it is a value: as rows of a table, or every member has all of it and hears of factors (shoal/replica).
//
//   sharing                 rows, factors, or auto: what is predicted to be quicker on these links (matrix_choice.h), and the other one from the end of an
//                           epoch on when they have changed (chosen_matrix.h)
//   factors:halton          over about log2 P targets a member, which relay
//   factors:fitted:2        over two targets each, chosen by what the links between each two members were measured to bear
//
// Threads: one; every call by all members alike, unless it says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shoal/core/time.h"
#include "shoal/exchange/matrix_way.h"
#include "shoal/factor/outer.h"
#include "shoal/learn/minibatch.h"
#include "shoal/learn/rows.h"
#include "shoal/table/tables.h"

namespace shoal::learn {

struct Sharing {
  enum class Way : std::uint8_t { automatic, rows, factors } way = Way::automatic;
  enum class Over : std::uint8_t { full, halton, fitted } over = Over::full;  // of factors
  unsigned targets = 2;                                                       // of each member; of fitted
  std::uint16_t channel = 6;                                                  // of the transport's operations; one that nothing else has used
};
// Throws Error{invalid_argument} that lists them.
Sharing sharing_from(const std::string& text);
std::string name(const Sharing& sharing);

struct MatrixForm {
  std::string name;
  table::Key rows = 0;
  std::size_t width = 1;
  table::Consistency consistency = table::Bsp{};
  table::Encoding encoding = table::Encoding::none;  // of rows
};

template <class T>  // float or double
class SharedMatrix {
 public:
  using Load = std::function<exchange::MatrixLoad()>;
  explicit SharedMatrix(std::size_t width) : width_(width) {}
  virtual ~SharedMatrix() = default;
  std::size_t width() const { return width_; }
  const std::string& why() const { return why_; }  // it is shared as it is, where that was decided: a sentence, or nothing
  void shared_as(bool factors, const std::string& why) {
    why_ = why.empty() ? "" : std::string("weights are shared as ") + (factors ? "factors: " : "rows: ") + why;
  }
  // By any member, rows one below the other.
  virtual void read(std::span<const table::Key> keys, std::span<T> values) = 0;
  // The same to the last bit, where rows travel rounded; right behind a barrier.
  virtual void fetch(std::span<const table::Key> keys, std::span<T> values) = 0;
  virtual void add(factor::Outer<T> outer) = 0;  // sealed
  virtual void tick() = 0;
  virtual void barrier() = 0;
  // Rows for all, each by one member; between the same barriers nobody does anything else.
  virtual void set(std::span<const table::Key> keys, std::span<const T> values) = 0;
  // Right behind a barrier: all rows below `end` times `factor`.
  virtual void scale(double factor, table::Key end) = 0;
  // Right behind a barrier: from here on it may be shared otherwise (chosen_matrix.h). load: asked only then, as share() does.
  virtual void end_epoch(const Load& load) { static_cast<void>(load); }

 private:
  std::size_t width_;
  std::string why_;
};

// Reads the rows that these samples touch, as touched.keys() has them. Returns how long that took, in seconds.
template <class T>
double read_touched(SharedMatrix<T>& matrix, const data::SparseSlice& samples, std::span<const std::uint32_t> numbers, TouchedColumns& touched,
                    std::vector<T>& values) {
  touched.collect(samples, numbers);
  values.resize(touched.keys().size() * matrix.width());
  const Instant asked = steady_now();
  matrix.read(touched.keys(), values);
  return seconds_between(asked, steady_now());
}

// The rows as 32-bit numbers of a model, and back.
template <class T>
Tensor tensor_from(SharedMatrix<T>& matrix, const KeyRange& range) {
  std::vector<T> rows(range.size() * matrix.width());
  in_parts(keys_in(range), matrix.width(), std::span(rows), [&](auto keys, auto part) { matrix.fetch(keys, part); });
  return {{range.size(), matrix.width()}, std::vector<float>(rows.begin(), rows.end())};
}
template <class T>
void set_rows(SharedMatrix<T>& matrix, const KeyRange& range, const Tensor& tensor) {
  const std::vector<T> rows(tensor.values.begin(), tensor.values.end());
  matrix.set(keys_in(range), rows);
}

// Decides how to share, and begins: rows are zeros. `load` is asked where there is something to decide: what this member does in a clock; of it
// vectors, entries and touched. The links are measured where it depends on them. Throws Error{invalid_argument} for a consistency or an encoding that factors do not have.
template <class T>
std::unique_ptr<SharedMatrix<T>> share(net::Transport& transport, table::Worker& worker, const MatrixForm& form, const Sharing& sharing,
                                       const std::function<exchange::MatrixLoad()>& load, Nanoseconds patience);

}  // namespace shoal::learn
