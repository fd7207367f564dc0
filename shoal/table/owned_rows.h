// The values that a server owns, and who has read them.
//
// A row is kept as *settled*: all that is added for good, in an order that is declared; and, while increments have arrived that are not
// settled yet, as *live*, which has them too. Beside it lies the state of the table's rule, if that steps.
// Threads: the transport's loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "shoal/core/bytes.h"
#include "shoal/net/transport.h"
#include "shoal/table/changes.h"
#include "shoal/table/message.h"
#include "shoal/table/rounding.h"
#include "shoal/table/row_map.h"
#include "shoal/table/spec.h"
#include "shoal/table/untold.h"

namespace shoal::table {

template <class T>
class RowsImage;

template <class T>
class OwnedRows {
 public:
  using Number = typename RowMap<T>::Number;
  static constexpr net::Rank kNobody = ~net::Rank{0};

  // cold: where settled rows and their states lie; nullptr: in memory. bodies: memory for rows that are sent to readers.
  OwnedRows(const Spec& spec, net::Rank readers, const std::shared_ptr<ColdFile>& cold = nullptr,
            std::shared_ptr<const BytesPool> bodies = BytesPool::of_process());

  Number number_of(Key key, Number near = 0);      // with initial values if it is new; `near`: where it may be (RowMap)
  void expect(Key key) const { settled_.expect(key); }  // RowMap
  std::size_t run(Number first, std::span<const Key> keys) const { return settled_.run(first, keys); }
  Number guess(Key key) const { return settled_.guess(key); }
  Key key(Number number) const { return settled_.key(number); }
  std::span<const T> visible(Number number) const; // live if there is such, else settled
  std::span<const T> sums(Number number);          // of the row's gradients, where the rule keeps them (rule.h)
  // Of kind rows, or changes, of bounded size, otherwise with this header; as they travel.
  std::vector<Message> messages(const Header& header, std::span<const Number> numbers);
  std::vector<Message> messages(const Header& header, std::span<const Change> changes);

  // --- values; `by`: who added, so that it need not be told
  // To a run of so many rows (RowMap), settled at once.
  void add(Number first, std::size_t count, std::span<const T> values, net::Rank by);
  void overlay(Number number, std::span<const T> values, net::Rank by);   // live, until as many settle()
  void settle(Number number, std::span<const T> values);                  // of what was overlaid
  // sums: of the row's gradients, as who computed this one has seen them (rule.h); empty: as they are.
  void step(const Rule& rule, Number number, std::span<const T> gradient, double divisor, std::span<const T> sums);
  void assign(Number number, std::span<const T> values);                  // settled; what is live above it is forgotten
  bool is_overlaid(Number number) const { return live_number_[number] != RowMap<T>::kNone && later_[live_number_[number]] > 0; }

  // --- rows as an image has them (image.h): their values, and behind them the state of the rule
  std::size_t size() const { return settled_.size(); }
  std::size_t full_width() const { return settled_.width() + state_.width(); }
  void copy_out(Number number, std::span<T> row) const;                   // settled
  void read_ahead(std::size_t begin, std::size_t count) const { settled_.read_ahead(begin, count); }  // RowMap
  void put(Number number, std::span<const T> row);                        // as assign(), with the state
  void reset();                                                           // all rows have their initial values
  void take_over(OwnedRows& kept);                                        // settled ones; nobody has read them here, and `kept` has no rows any more
  void watch(RowsImage<T>& image) { images_.push_back(&image); }          // it is told of rows before they change
  void unwatch(RowsImage<T>& image) { std::erase(images_, &image); }
  bool is_watched() const { return !images_.empty(); }
  // From now on rows are kept there, by number, as they are before their first change; nullptr: no more.
  void keep_in(RowMap<T>* before) { before_ = before; }
  void uncover(Number number) {                                           // nothing is overlaid
    if (const Number later = live_number_[number]; later != RowMap<T>::kNone) later_[later] = 0;
    changed(number, slowest_);
  }

  // --- readers
  void subscribe(Number number, net::Rank reader);
  void unsubscribe(std::span<const Number> numbers, net::Rank reader);
  void unsubscribe();                              // by all
  // What this reader subscribed and others changed since it took them last: about as many as take `room` bytes, and all that lack clocks below `due`.
  struct Round {
    std::vector<Number> whole;
    std::vector<Change> some;                      // with all blocks that others changed, where these take fewer bytes
  };
  Round take_changes(net::Rank reader, std::size_t room, Clock due);
  // The clock that a reader may be promised, as far as it depends on what it has not taken.
  Clock complete(net::Rank reader) const { return untold_[reader].complete(); }
  void rises(Clock slowest) { slowest_ = slowest; }  // what changes from now on lacks no clock below
  void weigh() { weighed_ = true; }                // from now on sum up how much rows change, so that important ones go first

 private:
  void changed(Number number, Clock lacks);        // all of it, and nobody knows
  void added(Number number, std::span<const T> row, std::span<const T> values, net::Rank by);  // by these; row: as it is
  template <class Which>
  void changed(Number number, net::Rank by, Clock lacks, const Which& which);
  std::size_t bytes(Blocks blocks) const;          // on their way
  void moves(Number number, double magnitude);     // an element of it by so much
  void before_change(Number number) {              // of its settled values or its state
    if (!images_.empty() || before_) [[unlikely]] keep(number);
  }
  void make_room_for_subscribers();
  void keep(Number number);
  void initialise(Number number);                  // from zeros

  const Initial initial_;
  const Columns columns_;
  const std::size_t row_bytes_;                    // on its way, without its key
  const bool divides_;                             // whether some columns may travel without the others
  const std::shared_ptr<const BytesPool> bodies_;
  const std::size_t words_;                        // of subscribers, a row
  RowMap<T> settled_;
  RowMap<T> state_;                                // of the rule, by key
  RowMap<T> live_;
  std::optional<Rounded<T>> rounded_;              // where rows are rounded on their way
  std::vector<Number> live_number_;                // by number: in live_, or none
  std::vector<std::uint32_t> later_;               // by number in live_: increments that are not settled; 0: the settled row says it all
  bool any_subscriber_ = false;                    // else the next two are empty
  std::vector<std::uint64_t> subscribers_;         // bits by rank, `words_` a row
  std::vector<std::uint64_t> changed_;             // likewise: whom its changes are kept for in untold_
  std::vector<Untold> untold_;                     // by reader
  bool any_divided_ = false;                       // row has ever been in it of which some columns changed
  Clock slowest_ = 0;
  bool weighed_ = false;
  std::vector<double> moved_;                      // by number, where weighed: sum of changes in relation to its size
  std::vector<RowsImage<T>*> images_;              // being walked through
  RowMap<T>* before_ = nullptr;                    // or where rows are kept before they change
};

extern template class OwnedRows<float>;
extern template class OwnedRows<double>;
extern template class OwnedRows<std::int32_t>;
extern template class OwnedRows<std::int64_t>;

}  // namespace shoal::table
