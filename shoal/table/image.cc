#include "shoal/table/image.h"

#include <algorithm>

namespace shoal::table {

template <class T>
RowsImage<T>::RowsImage(OwnedRows<T>& rows) : rows_(rows), end_(static_cast<Number>(rows.size())), kept_(rows.full_width()) {
  rows_.watch(*this);
}

template <class T>
RowsImage<T>::~RowsImage() {
  rows_.unwatch(*this);
}

template <class T>
void RowsImage<T>::before_change(Number number) {
  if (number < at_ || number >= end_ || kept_.find(number) != RowMap<T>::kNone) return;
  rows_.copy_out(number, kept_.row(kept_.insert(number)));
}

template <class T>
Bytes RowsImage<T>::next() {
  const std::size_t width = rows_.full_width();
  const std::size_t count = std::min<std::size_t>(rows_a_message(width * sizeof(T)), end_ - at_);
  rows_.read_ahead(at_ + count, count);
  Bytes chunk(count * (sizeof(Key) + width * sizeof(T)));
  Key* key = reinterpret_cast<Key*>(chunk.data());
  T* values = reinterpret_cast<T*>(chunk.data() + count * sizeof(Key));
  for (const auto end = static_cast<Number>(at_ + count); at_ < end; ++at_, values += width) {
    *key++ = rows_.key(at_);
    const Number kept = kept_.find(at_);
    if (kept == RowMap<T>::kNone) {
      rows_.copy_out(at_, {values, width});
    } else {
      set<T>({values, width}, kept_.row(kept));
    }
  }
  return chunk;
}

template <class T>
Message fetched(OwnedRows<T>& rows, const Message& fetch) {
  const std::size_t width = rows.full_width();
  Message message = Message::of_rows(Kind::fetched, fetch.header.table, fetch.header.count, width * sizeof(T));
  message.header.sequence = fetch.header.sequence;
  std::ranges::copy(fetch.keys(), message.key_places());
  T* into = message.value_places<T>();
  for (const Key key : fetch.keys()) {
    rows.copy_out(rows.number_of(key), {into, width});
    into += width;
  }
  return message;
}

template Message fetched(OwnedRows<float>&, const Message&);
template Message fetched(OwnedRows<double>&, const Message&);
template Message fetched(OwnedRows<std::int32_t>&, const Message&);
template Message fetched(OwnedRows<std::int64_t>&, const Message&);
template class RowsImage<float>;
template class RowsImage<double>;
template class RowsImage<std::int32_t>;
template class RowsImage<std::int64_t>;

}  // namespace shoal::table
