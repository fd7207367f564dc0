#include "shoal/learn/topic/all_documents.h"

#include <cstring>
#include <string>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/data/read.h"

namespace shoal::learn::topic {
namespace {

// A member's documents in one piece: of each the length of its name, how many topics, name, topics.
struct Head {
  std::uint32_t name, topics;
};

class Part {
 public:
  explicit Part(const Bytes& bytes) : rest_(bytes.data(), bytes.size()) {}
  void next(std::string& name, std::vector<TopicCount>& counts) {
    Head head;
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

}  // namespace

void each_document_of_all(const Lda& lda, Gather& gather,
                          const std::function<void(std::string_view name, std::span<const TopicCount> counts)>& visit) {
  const text::Corpus& corpus = lda.corpus();
  std::vector<std::byte> own;
  const auto append = [&own](const void* from, std::size_t size) {
    const auto* const begin = static_cast<const std::byte*>(from);
    own.insert(own.end(), begin, begin + size);
  };
  lda.each_document([&](std::size_t document, std::span<const TopicCount> counts) {
    const std::string& name = corpus.names[document];
    const Head head{static_cast<std::uint32_t>(name.size()), static_cast<std::uint32_t>(counts.size())};
    append(&head, sizeof(head));
    append(name.data(), name.size());
    append(counts.data(), counts.size_bytes());
  });
  Bytes bytes(own.size());
  if (!own.empty()) std::memcpy(bytes.data(), own.data(), own.size());
  own = {};
  const std::vector<Bytes> all = gather(std::move(bytes), "topics of documents");
  const auto members = static_cast<std::uint32_t>(all.size());
  std::vector<Part> parts(all.begin(), all.end());
  std::string name;
  std::vector<TopicCount> counts;
  for (std::uint64_t document = 0; members != 0 && document < corpus.all_documents; ++document) {
    std::uint32_t owner = 0;
    while (!data::Share{owner, members}.holds(document)) ++owner;
    parts[owner].next(name, counts);
    visit(name, counts);
  }
}

}  // namespace shoal::learn::topic
