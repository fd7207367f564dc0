// Functions that members call on the rows of one server (functions.h), off the transport's loop: a function may be slow, and one in Python waits for
// the interpreter.
//
// Rows by key: the function has copies of settled rows, and until what it made of them is in place whatever else would touch rows of this
// table waits here, in order. All rows: an image is walked through, a chunk at a time, what is returned is summed, and nothing waits.
// Threads: the transport's loop. Lifetime: what is under way holds it; the rows are used until end().
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "shoal/net/transport.h"
#include "shoal/table/functions.h"
#include "shoal/table/image.h"
#include "shoal/table/owned_rows.h"
#include "shoal/table/spec.h"

namespace shoal::table {

// Runs `job`, which throws nothing, somewhere else, and then `then` on the loop; jobs one at a time, in order.
using OffLoop = std::function<void(std::function<void()> job, std::function<void()> then)>;

template <class T>
class Calls : public std::enable_shared_from_this<Calls<T>> {
 public:
  using Number = typename OwnedRows<T>::Number;
  // values: of these rows, one below the other, settled and for readers. Returns why they cannot be; empty: they are.
  using Write = std::function<std::string(std::span<const Number> numbers, std::span<const T> values)>;
  using Answer = std::function<void(net::Rank to, Message message)>;
  Calls(const Spec& spec, OwnedRows<T>& rows, std::shared_ptr<const Functions> functions, OffLoop off_loop, Write write, Answer answer);

  // clock: of the settled rows.
  void call(net::Rank by, const Message& request, Clock clock);
  bool is_busy() const { return busy_; }
  void later(std::function<void()> what) { later_.push_back(std::move(what)); }  // while it is busy
  void end();

 private:
  struct Call;
  void run(const std::shared_ptr<Call>& call, std::function<void()> then);
  void work(Call& call) const;                     // on another thread
  void take_rows(const std::shared_ptr<Call>& call);
  void walk(const std::shared_ptr<Call>& call);
  void finish(Call& call);
  void go_on();

  const Spec spec_;
  OwnedRows<T>& rows_;
  const std::shared_ptr<const Functions> functions_;
  const OffLoop off_loop_;
  Write write_;
  Answer answer_;
  bool busy_ = false, over_ = false;
  std::deque<std::function<void()>> later_;
  std::set<std::shared_ptr<Call>> walks_;          // under way
};

extern template class Calls<float>;
extern template class Calls<double>;
extern template class Calls<std::int32_t>;
extern template class Calls<std::int64_t>;

}  // namespace shoal::table
