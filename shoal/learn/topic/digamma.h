// psi, the digamma function, and exp(psi), what a Dirichlet distribution's parameters weigh as (exp of E ln theta, but for a factor). Threads: any.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace shoal::learn::topic {

// Of a number above 0: by its recurrence up to 6, then by its asymptotic series (Abramowitz and Stegun, 6.3.18): about 1e-10.
inline double digamma(double x) {
  double below = 0;
  for (; x < 6; ++x) below -= 1 / x;
  const double inverse = 1 / (x * x);
  return below + std::log(x) - 0.5 / x - inverse * (1.0 / 12 - inverse * (1.0 / 120 - inverse * (1.0 / 252 - inverse * (1.0 / 240 - inverse / 132))));
}

// to_i = exp(psi(x_i) - highest), with one exponential each: the same series at y = x + 6, whose logarithm need not be taken, and the recurrence's
// six fractions as one, the derivative of x (x + 1) ... (x + 5) over itself.
template <class X>
void exp_digammas(std::span<const X> x, double highest, float* to) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto a = static_cast<double>(x[i]);
    const double y = a + 6, inverse = 1 / (y * y);
    const double series = 0.5 / y + inverse * (1.0 / 12 - inverse * (1.0 / 120 - inverse * (1.0 / 252 - inverse * (1.0 / 240 - inverse / 132))));
    const double product = a * (120 + a * (274 + a * (225 + a * (85 + a * (15 + a)))));
    const double derivative = 120 + a * (548 + a * (675 + a * (340 + a * (75 + a * 6))));
    to[i] = static_cast<float>(y * std::exp(-series - derivative / product - highest));
  }
}

}  // namespace shoal::learn::topic
