// What shoal topics train leaves: documents' topics, the page with documents of all members as examples, the model.
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "app/topics.h"
#include "shoal/core/aside.h"
#include "shoal/core/error.h"
#include "shoal/core/text.h"
#include "shoal/learn/topic/all_documents.h"
#include "shoal/learn/topic/fold_in.h"
#include "shoal/learn/topic/model_files.h"
#include "shoal/learn/topic/page.h"

namespace shoal::app {
namespace {

namespace topic = learn::topic;

// The documents of each topic that have most of it, of all members; nothing but on rank 0.
topic::Examples examples_of(topic::Lda& lda, learn::Gather& gather) {
  const text::Corpus& corpus = lda.corpus();
  const auto topics = static_cast<std::uint32_t>(lda.prior().alpha.size());
  const double alpha_sum = lda.prior().alpha_sum();
  const std::vector<topic::Topic> shown = lda.largest_topics(topic::kMostShown);
  topic::Examples examples(topics, shown), together(topics, shown);
  lda.each_document([&](std::size_t document, std::span<const topic::TopicCount> counts) {
    examples.offer(corpus.names[document], corpus.documents[document], topic::mixture_of(counts, lda.prior().alpha, alpha_sum), corpus.vocabulary);
  });
  const std::string own = examples.lines();
  Bytes bytes(own.size());
  std::copy(own.begin(), own.end(), reinterpret_cast<char*>(bytes.data()));
  for (const Bytes& of_member : gather(bytes, "examples of topics")) {
    together.offer_lines({reinterpret_cast<const char*>(of_member.data()), of_member.size()});
  }
  return together;
}

// Documents that were held out of those that are gone through.
class FoldedIn {
 public:
  FoldedIn(const topic::Phi& phi, const topic::HeldOut* documents) : documents_(documents), fold_in_(phi) {}
  // The next of all documents: its mixture, if it was held out.
  void next(topic::Mixture& mixture) {
    if (documents_ == nullptr || at_ == documents_->numbers.size() || documents_->numbers[at_] != document_++) return;
    const auto shown = documents_->shown[at_], hidden = documents_->hidden[at_];
    std::vector<std::uint32_t> words(shown.begin(), shown.end());
    words.insert(words.end(), hidden.begin(), hidden.end());
    fold_in_(words, mixture);
    ++at_;
  }

 private:
  const topic::HeldOut* const documents_;
  topic::FoldIn fold_in_;
  std::uint64_t document_ = 0;
  std::size_t at_ = 0;
};

}  // namespace

void write_results(topic::Lda& lda, learn::Gather& gather, const learn::ModelFolder& folder, OtherDocuments others) {
  const topic::Model model = lda.model();
  const topic::Examples examples = examples_of(lda, gather);
  if (model.words() == 0) return topic::each_document_of_all(lda, gather, {});
  const topic::Phi phi(model);
  std::vector<topic::Mixture> mixtures;
  const std::filesystem::path file = folder.path() / "doc_topics.tsv";
  write_aside(file, [&](const std::filesystem::path& aside) {
    std::ofstream out(aside, std::ios::binary);
    out << topic::kDocumentColumns;
    for (const std::string& line : others.before) out << line;
    FoldedIn held_out(phi, others.held_out);
    std::size_t document = 0;
    topic::each_document_of_all(lda, gather, [&](std::string_view name, std::span<const topic::TopicCount> counts) {
      if (others.rows) others.rows->add(counts);
      topic::Mixture mixture = topic::mixture_of(counts, phi);
      held_out.next(mixture);
      if (!others.unknown.empty()) mixture.unknown = others.unknown[document];
      ++document;
      if (mixture.tokens > 0 && mixtures.size() < topic::kPyldavisDocuments) mixtures.push_back(mixture);
      mixture.keep_largest(phi, topic::kSmallestShare, topic::kMostTopics);
      out << topic::document_line(name, mixture);
    });
    out.close();
    if (!out) throw Error(Code::io, "cannot be written: " + std::generic_category().message(errno), file.string());
  });
  topic::write_document_rows(folder, others.rows);
  topic::write_pages(folder, model, examples, mixtures, show_count(others.before.size() + lda.corpus().all_documents, "documents"));
  topic::write_model(folder, model);
}

}  // namespace shoal::app
