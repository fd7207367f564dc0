#include "shoal/learn/chosen_matrix.h"

#include <utility>
#include <vector>

namespace shoal::learn {

template <class T>
ChosenMatrix<T>::ChosenMatrix(net::Transport& transport, std::unique_ptr<MatrixChoice> choice, const MatrixChoice::Answer& first, table::Key rows,
                              std::size_t width, Make make, Now now)
    : SharedMatrix<T>(width), rank_(transport.rank()), size_(transport.size()), choice_(std::move(choice)), rows_(rows), make_(std::move(make)),
      now_(std::move(now)), factors_(first.factors), drift_(first.seconds) {
  ways_[factors_] = make_(factors_);
  this->shared_as(factors_, first.why);
}

template <class T>
void ChosenMatrix<T>::read(std::span<const table::Key> keys, std::span<T> values) {
  const Instant began = now_();
  way().read(keys, values);
  waited_ += seconds_between(began, now_());
}

template <class T>
void ChosenMatrix<T>::tick() {
  const Instant began = now_();
  way().tick();
  waited_ += seconds_between(began, now_());
  has_drifted_ |= drift_.after(std::exchange(waited_, 0));
}

template <class T>
void ChosenMatrix<T>::end_epoch(const Load& load) {
  if (choice_->any(std::exchange(has_drifted_, false))) choose_anew(load());
}

template <class T>
void ChosenMatrix<T>::choose_anew(const exchange::MatrixLoad& load) {
  const MatrixChoice::Answer answer = choice_->answer_again(choice_->load(load), factors_);
  drift_.expects(answer.seconds);
  drift_.fitted();
  if (answer.factors != factors_) hand_over(answer.factors, answer.why);
}

// Each member its share of the rows.
template <class T>
void ChosenMatrix<T>::hand_over(bool factors, const std::string& why) {
  const auto keys = keys_in({rank_, rows_, size_});
  std::vector<T> values(keys.size() * this->width());
  in_parts(std::span(keys), this->width(), std::span(values), [&](auto part, auto rows) { way().fetch(part, rows); });
  way().barrier();  // all have read
  factors_ = factors;
  if (!ways_[factors_]) ways_[factors_] = make_(factors_);
  this->shared_as(factors_, why);
  way().set(keys, values);
  way().barrier();
}

template class ChosenMatrix<float>;
template class ChosenMatrix<double>;

}  // namespace shoal::learn
