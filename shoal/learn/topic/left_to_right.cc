#include "shoal/learn/topic/left_to_right.h"

#include <cmath>

#include "shoal/core/seed.h"
#include "shoal/learn/topic/gibbs_fold_in.h"

namespace shoal::learn::topic {
namespace {

// Particles go through a document's words one after the other.
class Particle {
 public:
  Particle(const Phi& phi, const LeftToRightOptions& options) : phi_(phi), options_(options), drawn_(phi) {}

  // Adds what this particle gives to each word's probability; `step` is its own for its draws.
  void go_through(std::span<const std::uint32_t> words, std::uint64_t step, std::span<double> probabilities) {
    drawn_.clear();
    topics_.clear();
    for (std::uint32_t n = 0; n < words.size(); ++n) {
      const auto random = [&](std::uint32_t i) { return uniform(options_.seed, step, n, i); };
      if (options_.redraw) {
        for (std::uint32_t i = 0; i < n; ++i) {
          drawn_.remove(topics_[i]);
          topics_[i] = drawn_.draw(words[i], random(i));
          drawn_.add(topics_[i]);
        }
      }
      probabilities[n] += drawn_.weight(words[n]) / (n + phi_.alpha_sum());
      topics_.push_back(drawn_.draw(words[n], random(n)));
      drawn_.add(topics_.back());
    }
  }

 private:
  const Phi& phi_;
  const LeftToRightOptions& options_;
  DrawnTopics drawn_;
  std::vector<Topic> topics_;
};

}  // namespace

Foretold left_to_right(const Phi& phi, const text::Documents& documents, std::size_t begin, std::size_t end, const LeftToRightOptions& options) {
  Particle particle(phi, options);
  std::vector<std::uint32_t> words;
  std::vector<double> probabilities;
  Foretold sum;
  for (std::size_t d = begin; d < end; ++d) {
    words.clear();
    for (const std::uint32_t word : documents[d]) {
      if (phi.knows(word)) words.push_back(word);
    }
    sum.unknown += documents[d].size() - words.size();
    sum.tokens += words.size();
    probabilities.assign(words.size(), 0);
    for (unsigned number = 0; number < options.particles; ++number) {
      particle.go_through(words, d * options.particles + number, probabilities);
    }
    for (const double probability : probabilities) sum.log_probability += std::log(probability / options.particles);
  }
  return sum;
}

}  // namespace shoal::learn::topic
