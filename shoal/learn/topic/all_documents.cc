#include "shoal/learn/topic/all_documents.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/data/read.h"

namespace shoal::learn::topic {
namespace {

// A member's documents in one piece: of each the length of its name, how many topics, name, topics.
struct DocumentHead {
  std::uint32_t name, topics;
};

constexpr std::uint64_t kTogether = 1 << 18;  // documents of all members whose topics are on their way at once

class MembersPart {
 public:
  explicit MembersPart(const Bytes& bytes) : rest_(bytes.data(), bytes.size()) {}
  void next(std::string& name, std::vector<TopicCount>& counts) {
    DocumentHead head;
    copy(&head, sizeof(head));
    name.resize(head.name);
    copy(name.data(), name.size());
    counts.resize(head.topics);
    copy(counts.data(), counts.size() * sizeof(TopicCount));
  }

 private:
  void copy(void* into, std::size_t size) {
    if (size > rest_.size()) throw Error(Code::mismatch, "a member sent topics of other documents", "", "run the same program on all members");
    if (size != 0) std::memcpy(into, rest_.data(), size);
    rest_ = rest_.subspan(size);
  }
  std::span<const std::byte> rest_;
};

// Of this member's documents `begin` to `end` - 1.
Bytes packed(const Lda& lda, std::size_t begin, std::size_t end) {
  std::vector<std::byte> own;
  const auto append = [&own](const void* from, std::size_t size) {
    const auto* const first = static_cast<const std::byte*>(from);
    own.insert(own.end(), first, first + size);
  };
  lda.each_document([&](std::size_t document, std::span<const TopicCount> counts) {
    const std::string& name = lda.corpus().names[document];
    const DocumentHead head{static_cast<std::uint32_t>(name.size()), static_cast<std::uint32_t>(counts.size())};
    append(&head, sizeof(head));
    append(name.data(), name.size());
    append(counts.data(), counts.size_bytes());
  }, begin, end);
  Bytes bytes(own.size());
  if (!own.empty()) std::memcpy(bytes.data(), own.data(), own.size());
  return bytes;
}

}  // namespace

void each_document_of_all(const Lda& lda, Gather& gather,
                          const std::function<void(std::string_view name, std::span<const TopicCount> counts)>& visit) {
  const text::Corpus& corpus = lda.corpus();
  const data::Share share = lda.share();
  std::string name;
  std::vector<TopicCount> counts;
  std::size_t done = 0;  // of this member's
  for (std::uint64_t begin = 0; begin < corpus.all_documents; begin += kTogether) {
    const std::uint64_t end = std::min(begin + kTogether, corpus.all_documents);
    std::size_t until = done;
    for (std::uint64_t document = begin; document < end; ++document) until += share.holds(document);
    const std::vector<Bytes> all = gather(packed(lda, done, until), "topics of documents");
    done = until;
    if (all.empty()) continue;
    std::vector<MembersPart> parts(all.begin(), all.end());
    for (std::uint64_t document = begin; document < end; ++document) {
      parts[share.owner(document)].next(name, counts);
      visit(name, counts);
    }
  }
}

}  // namespace shoal::learn::topic
