// How quick the threads of members are that are not alike, by which documents are dealt (dealing.h).
//
// Members whose processors have one name are taken for alike: they have the same parts in every run, and the model the same bits. Of others each draws
// the topics of its first documents for a moment, all of them at once over the links that they have, and what counts is what a thread drew in the time
// in which it did not wait. That is rounded, so that noise rarely moves anybody: to eighths of the quickest, and what has seven is as quick. Whoever wants the
// same parts again says them: a number each, with which nothing is measured.
//
// Threads: one. Every call by all members alike.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/learn/gather.h"
#include "shoal/learn/topic/lda.h"
#include "shoal/net/transport.h"
#include "shoal/text/corpus.h"

namespace shoal::learn::topic {

// What a member says of its threads: nothing, that they are to be tried, or how quick they are beside others', in any unit.
struct Speed {
  enum class By : std::uint8_t { processor, trial, number } by = By::processor;
  double number = 0;
  std::uint32_t found = 0;  // in parts of kFullSpeed, where all of whom these members are left have found it before
};
Speed speed_of(std::string_view word);  // "auto", "measured" or a number above 0; throws Error{invalid_argument} that says so

// In parts of the quickest's kFullSpeed, at least one. What is no rate at all, as of a member without documents, is taken for quick.
std::vector<std::uint32_t> in_parts(std::span<const double> rates);

inline constexpr std::uint16_t kTrialChannel = 26;  // beside an Lda, its checkpoints and kGatherChannel (training.h)

// What this machine calls its processor; nothing where it does not say.
std::string processor_name();

// Of all members, by rank, in parts of kFullSpeed: the same for all. corpus and options: what training is about, documents as they lie before they are
// dealt. channel: of the transport's operations the first of kLdaChannels that nothing else has used, for a trial. Throws Error{mismatch} where members say it in
// different ways, and Error{invalid_argument} where a member has too little memory for training.
std::vector<std::uint32_t> agreed_speeds(net::Transport& transport, Gather& gather, const text::Corpus& corpus, const LdaOptions& options,
                                         std::uint16_t channel, const Speed& own, std::string_view processor = processor_name());

}  // namespace shoal::learn::topic
