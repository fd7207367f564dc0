// The topics of all members' documents on rank 0, one document after another as the files have them.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "shoal/learn/gather.h"
#include "shoal/learn/topic/lda.h"

namespace shoal::learn::topic {

// By all members; visit() runs on rank 0 alone: a document's name, and how many of its tokens have each topic. Memory: 8 bytes a pair of document
// and topic, of a quarter of a million documents at a time.
void each_document_of_all(const Lda& lda, Gather& gather,
                          const std::function<void(std::string_view name, std::span<const TopicCount> counts)>& visit);

}  // namespace shoal::learn::topic
