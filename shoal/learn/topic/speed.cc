#include "shoal/learn/topic/speed.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "shoal/core/error.h"
#include "shoal/core/fnv.h"
#include "shoal/net/call.h"
#include "shoal/net/narrowed.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint64_t kTrialTokens = 100'000;      // of each thread
constexpr std::uint64_t kLeastTokens = 10'000;       // of each thread, by the mean: of fewer a sweep is over before threads have begun
constexpr unsigned kTrialSweeps = 5;                 // of which the first, with cold caches, does not count
constexpr std::uint32_t kAsQuick = kFullSpeed - 1;   // parts of a trial from which on a member is as quick as the quickest
static_assert(kTrialChannel + kLdaChannels <= net::Narrowed::kChannels);  // of jobs that survive losses

// The first documents, until there are so many tokens.
text::Corpus beginning_of(const text::Corpus& corpus, std::uint64_t tokens) {
  text::Corpus first;
  first.frequencies = corpus.frequencies;  // slices are those of training
  first.all_documents = corpus.all_documents;
  first.all_tokens = corpus.all_tokens;
  for (std::size_t d = 0; d < corpus.documents.size() && first.documents.tokens() < tokens; ++d) first.documents.append(corpus.documents[d]);
  first.documents.finish();
  return first;
}

// Tokens that a thread draws in a second of its own.
double drawn_by(Lda& lda, std::uint32_t threads) {
  std::uint64_t tokens = 0;
  double seconds = 0;
  for (unsigned sweep = 0; sweep < kTrialSweeps; ++sweep) {
    const SweepReport report = lda.sweep();
    if (sweep == 0) continue;
    tokens += report.tokens;
    seconds += report.seconds * threads - report.waited;
  }
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

// The same of each member, by rank; nothing where there is too little to draw.
std::vector<double> tried(net::Transport& transport, Gather& gather, const text::Corpus& corpus, LdaOptions options, std::uint16_t channel) {
  struct Brings {
    std::uint64_t threads = 0, memory = 0;
  };
  options.dealing = {};
  std::uint64_t threads = 0;
  for (const Brings& member : said_by_all(gather, Brings{options.threads, options.memory}, "what it brings")) {
    threads += member.threads;
    options.dealing.threads.push_back(static_cast<std::uint32_t>(member.threads));
    options.dealing.memory.push_back(member.memory);
  }
  if (corpus.all_tokens < threads * kLeastTokens) return {};
  options.channel = channel;
  const text::Corpus beginning = beginning_of(corpus, kTrialTokens * options.threads);
  Lda lda(transport, beginning, options);
  try {
    return said_by_all(gather, drawn_by(lda, options.threads), "how quick it was");  // then nobody needs another's totals any more
  } catch (const std::exception& error) {  // the others hear why before its tables are left
    const auto* const told = dynamic_cast<const Error*>(&error);
    const Error why = told != nullptr ? *told : Error(Code::io, error.what(), "a trial of how quick members are", "is there memory for it?");
    net::call(transport, [&] { transport.fail(why); });
    throw;
  }
}

}  // namespace

Speed speed_of(std::string_view word) {
  if (word == "auto") return {};
  if (word == "measured") return {Speed::By::trial};
  const std::string text(word);
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0' && std::isfinite(number) && number > 0) return {Speed::By::number, number};
  throw Error(Code::invalid_argument, "\"" + text + "\" is none", "--speed", "auto, measured or a number above 0");
}

std::vector<std::uint32_t> in_parts(std::span<const double> rates) {
  const double most = std::ranges::max(rates);
  std::vector<std::uint32_t> parts;
  for (const double rate : rates)
    parts.push_back(rate > 0 ? std::max(1u, static_cast<std::uint32_t>(std::lround(rate / most * kFullSpeed))) : kFullSpeed);
  return parts;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string name;
  for (std::string line; std::getline(file, line) && !line.empty();) {  // the first one's: x86 has a model, ARM an implementer and a part
    if (line.starts_with("model name") || line.starts_with("CPU implementer") || line.starts_with("CPU part")) name += line + "\n";
  }
  return name;
}

std::vector<std::uint32_t> agreed_speeds(net::Transport& transport, Gather& gather, const text::Corpus& corpus, const LdaOptions& options,
                                         std::uint16_t channel, const Speed& own, std::string_view processor) {
  struct Said {
    std::uint64_t by = 0, found = 0, processor = 0;
    double number = 0;
  };
  Fnv1a hash;
  hash.add_bytes(std::as_bytes(std::span(processor)));
  const std::vector<Said> said = said_by_all(gather, Said{static_cast<std::uint64_t>(own.by), own.found, hash.value(), own.number}, "how quick it is");
  const auto alike = [&](auto field) { return std::ranges::all_of(said, [&](const Said& member) { return member.*field == said.front().*field; }); };
  if (!alike(&Said::by))
    throw Error(Code::mismatch, "members say in different ways how quick they are", "--speed", "a number on all members, or auto or measured on all of them");
  std::vector<std::uint32_t> parts(transport.size(), kFullSpeed);
  if (std::ranges::none_of(said, [](const Said& member) { return member.found == 0; })) {
    std::ranges::transform(said, parts.begin(), [](const Said& member) { return static_cast<std::uint32_t>(member.found); });
    return parts;
  }
  if (own.by == Speed::By::number) {
    std::vector<double> numbers(transport.size());
    std::ranges::transform(said, numbers.begin(), &Said::number);
    return in_parts(numbers);
  }
  if (transport.size() == 1 || (own.by == Speed::By::processor && alike(&Said::processor))) return parts;
  const std::vector<double> rates = tried(transport, gather, corpus, options, channel);
  if (rates.empty()) return parts;
  parts = in_parts(rates);
  for (std::uint32_t& of : parts) of = of >= kAsQuick ? kFullSpeed : of;
  return parts;
}

}  // namespace shoal::learn::topic
