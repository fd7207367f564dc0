#include "shoal/learn/chosen_matrix.h"

#include <utility>
#include <vector>

#include "shoal/core/time.h"

namespace shoal::learn {

template <class T>
ChosenMatrix<T>::ChosenMatrix(net::Transport& transport, std::unique_ptr<MatrixChoice> choice, const MatrixChoice::Answer& first, table::Key rows,
                              std::size_t width, Make make)
    : SharedMatrix<T>(width), rank_(transport.rank()), size_(transport.size()), choice_(std::move(choice)), rows_(rows), make_(std::move(make)),
      factors_(first.factors), drift_(first.seconds) {
  ways_[factors_] = make_(factors_);
  this->shared_as(factors_, first.why);
}

template <class T>
void ChosenMatrix<T>::read(std::span<const table::Key> keys, std::span<T> values) {
  const Instant began = steady_now();
  now().read(keys, values);
  waited_ += seconds_between(began, steady_now());
}

template <class T>
void ChosenMatrix<T>::add(factor::Outer<T> outer) {
  added_.vectors += outer.vectors();
  added_.entries += static_cast<double>(outer.entries());
  added_.touched += static_cast<double>(outer.rows().size());
  now().add(std::move(outer));
}

template <class T>
void ChosenMatrix<T>::tick() {
  const Instant began = steady_now();
  now().tick();
  waited_ += seconds_between(began, steady_now());
  has_drifted_ |= drift_.after(std::exchange(waited_, 0));
  ++clocks_;
}

template <class T>
void ChosenMatrix<T>::end_epoch() {
  const double clocks = std::exchange(clocks_, 0);
  const exchange::MatrixLoad added = std::exchange(added_, {});
  if (!choice_->any(std::exchange(has_drifted_, false)) || clocks == 0) return;
  choose_anew({.vectors = added.vectors / clocks, .entries = added.entries / clocks, .touched = added.touched / clocks});
}

template <class T>
void ChosenMatrix<T>::choose_anew(const exchange::MatrixLoad& load) {
  const MatrixChoice::Load of_all = choice_->load(load);
  const MatrixChoice::Answer answer = choice_->answer_again(of_all, factors_);
  drift_.expects(answer.seconds);
  drift_.fitted();
  if (answer.factors != factors_ && (ways_[answer.factors] || of_all.room)) hand_over(answer.factors, answer.why);
}

// Each member its share of the rows.
template <class T>
void ChosenMatrix<T>::hand_over(bool factors, const std::string& why) {
  const auto keys = keys_in({rank_, rows_, size_});
  std::vector<T> values(keys.size() * this->width());
  in_parts(std::span(keys), this->width(), std::span(values), [&](auto part, auto rows) { now().fetch(part, rows); });
  now().barrier();  // all have read
  factors_ = factors;
  if (!ways_[factors_]) ways_[factors_] = make_(factors_);
  this->shared_as(factors_, why);
  now().set(keys, values);
  now().barrier();
}

template class ChosenMatrix<float>;
template class ChosenMatrix<double>;

}  // namespace shoal::learn
