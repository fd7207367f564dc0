#include "shoal/table/calls.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/table/finite.h"

namespace shoal::table {

template <class T>
struct Calls<T>::Call {
  net::Rank by;
  Header header;                                   // of the request
  Clock clock;
  CallRequest<T> asked;
  std::unique_ptr<RowsImage<T>> image;             // of all rows; none: of rows by key
  std::vector<Number> numbers;
  std::vector<Key> keys;                           // on the thread while a function runs, as all below
  std::vector<T> before, rows;
  std::vector<Wide<T>> values;
  std::vector<Wide<T>> sums;                       // of values, over all rows so far
  std::string fault;
};

template <class T>
Calls<T>::Calls(const Spec& spec, OwnedRows<T>& rows, std::shared_ptr<const Functions> functions, OffLoop off_loop, Write write, Answer answer)
    : spec_(spec), rows_(rows), functions_(std::move(functions)), off_loop_(std::move(off_loop)), write_(std::move(write)),
      answer_(std::move(answer)) {}

template <class T>
void Calls<T>::call(net::Rank by, const Message& request, Clock clock) {
  const auto call = std::make_shared<Call>();
  call->by = by;
  call->header = request.header;
  call->clock = clock;
  call->asked = CallRequest<T>::from(request);
  if (request.header.count == 0) {
    call->image = std::make_unique<RowsImage<T>>(rows_);
    walks_.insert(call);
    return walk(call);
  }
  call->keys.assign(request.keys().begin(), request.keys().end());
  take_rows(call);
}

// --- rows by key

template <class T>
void Calls<T>::take_rows(const std::shared_ptr<Call>& call) {
  busy_ = true;
  std::vector<T> row(rows_.full_width());
  for (const Key key : call->keys) {
    call->numbers.push_back(rows_.number_of(key));
    rows_.copy_out(call->numbers.back(), row);
    call->before.insert(call->before.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(spec_.width));
  }
  run(call, [this, call] {
    const bool writes = call->fault.empty() && call->rows != call->before;
    if (writes) call->fault = write_(call->numbers, call->rows);
    call->header.ends = writes ? Ends::batch : Ends::nothing;
    finish(*call);
    go_on();
  });
}

template <class T>
void Calls<T>::go_on() {
  busy_ = false;
  while (!busy_ && !over_ && !later_.empty()) {
    const auto next = std::move(later_.front());
    later_.pop_front();
    next();
  }
}

// --- all rows

template <class T>
void Calls<T>::walk(const std::shared_ptr<Call>& call) {
  const Bytes chunk = call->fault.empty() ? call->image->next() : Bytes();
  if (chunk.empty()) {
    call->image.reset();
    walks_.erase(call);
    call->values = std::move(call->sums);
    return finish(*call);
  }
  const std::size_t full = rows_.full_width(), count = chunk.size() / (sizeof(Key) + full * sizeof(T));
  const auto* const keys = reinterpret_cast<const Key*>(chunk.data());
  const auto* row = reinterpret_cast<const T*>(keys + count);
  call->keys.assign(keys, keys + count);
  call->before.clear();
  for (std::size_t i = 0; i < count; ++i, row += full) call->before.insert(call->before.end(), row, row + spec_.width);
  run(call, [this, call] {
    if (call->fault.empty() && call->rows != call->before) call->fault = "writes rows, and was called on all of them; name the keys";
    const std::size_t each = call->values.size() / call->keys.size();
    if (call->sums.empty()) call->sums.resize(each);
    if (call->fault.empty() && call->sums.size() != each) call->fault = "returned unlike numbers of values for a row";
    for (std::size_t i = 0; call->fault.empty() && i < call->values.size(); ++i) call->sums[i % each] += call->values[i];
    walk(call);
  });
}

// ---

template <class T>
void Calls<T>::run(const std::shared_ptr<Call>& call, std::function<void()> then) {
  const auto self = this->shared_from_this();
  off_loop_([self, call] { self->work(*call); },
            [self, then = std::move(then)] {
              if (!self->over_) then();
            });
}

template <class T>
void Calls<T>::work(Call& call) const {
  const InsideFunction inside;
  call.rows = call.before;
  try {
    const Function<T> function = functions_->find<T>(spec_.name, call.asked.name);
    call.values = function({call.keys, call.rows, call.asked.argument});
    if (call.values.size() % call.keys.size() != 0) {
      call.fault = "returned " + std::to_string(call.values.size()) + " values for " + std::to_string(call.keys.size()) + " rows";
    }
    check_finite<T>(call.keys, call.rows, spec_.name);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    call.fault = what.substr(0, what.find('\n'));
  } catch (...) {
    call.fault = "threw what is no exception";
  }
}

template <class T>
void Calls<T>::finish(Call& call) {
  Message message;
  if (!call.fault.empty()) {
    message = Message::of_text(Kind::refused, call.header.table, ("function " + call.asked.name + ": " + call.fault).substr(0, kLongestText));
  } else {
    message = Message::of_kind(Kind::called, call.header.table);
    const std::size_t rows = call.header.count, of_keys = rows * sizeof(Key), of_values = call.values.size() * sizeof(Wide<T>);
    message.body = Bytes(of_keys + of_values);
    if (rows > 0) std::memcpy(message.body.data(), call.keys.data(), of_keys);
    if (of_values > 0) std::memcpy(message.body.data() + of_keys, call.values.data(), of_values);
    message.header.count = static_cast<std::uint32_t>(rows);
    message.header.length = static_cast<std::uint32_t>(message.body.size());
    message.header.clock = call.clock;
    message.header.ends = call.header.ends;
  }
  message.header.sequence = call.header.sequence;
  answer_(call.by, std::move(message));
}

template <class T>
void Calls<T>::end() {
  over_ = true;
  for (const auto& call : walks_) call->image.reset();
  walks_.clear();
  later_.clear();
  write_ = nullptr;
}

template class Calls<float>;
template class Calls<double>;
template class Calls<std::int32_t>;
template class Calls<std::int64_t>;

}  // namespace shoal::table
