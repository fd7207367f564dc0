// Documents on their way from a format into a corpus: words get numbers, are counted, joined into pairs, chosen, and dealt to members.
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shoal/core/fnv.h"
#include "shoal/text/pair_numbers.h"
#include "shoal/text/source.h"

namespace shoal::text {

class Gathering {
 public:
  // default_stop_words: the list where the source names none (rules.h).
  Gathering(const Source& source, const data::Share& share, std::string_view default_stop_words);

  // take(batch) for every `documents` documents that have come, which then are forgotten, and with finish() for what is left: nothing is kept but
  // them and the vocabulary, which is imposed. The source has no rules that need counts, and the share is everything.
  void hand_over(std::uint64_t documents, std::function<void(const Corpus& batch)> take);

  // What the words of a format that has numbers for them are called; before the first document. They are the vocabulary even where no document has
  // them.
  void have_words(data::Names words);

  // A token of the document that is being gathered; a number is that of have_words.
  void add(std::string_view word);
  void add(std::uint32_t word, std::uint32_t count) { document_.insert(document_.end(), count, word); }
  std::uint64_t tokens() const { return document_.size(); }  // of that document
  void end_document(std::string_view name = {});             // no name: its number from 1
  void broken_document() { ++reading_.broken; }
  // That the format has no lines for: those from number `first` on, before `end`, as it counts documents.
  void empty_documents(std::uint64_t first, std::uint64_t end);

  // files, form: as in Reading. ordered: as in Documents. Throws Error{invalid_argument} where no word is left.
  std::pair<Corpus, Reading> finish(std::vector<std::filesystem::path> files, std::string form, bool ordered);

 private:
  using Term = std::uint32_t;  // what counts as a word: a number of words_, or of pairs_ where pairs are the only words
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  void meet_word(std::string_view word);  // the next of words_
  void meet(std::string_view name);       // the next term
  Term word_called(std::string_view name);
  bool stops(std::string_view word) const;
  void make_pairs();                                  // of document_
  void join(std::span<const Term> words);             // into joined_
  Term joined(Term first, Term second);               // the term of a frequent pair, or kNone
  void count(std::span<const Term> document);
  void join_frequent_pairs();                         // in all that is gathered
  void place(std::span<const Term> document, std::string_view name);
  void choose_words();                                // when all are counted
  std::string_view joined_name(std::uint32_t first, std::uint32_t second);  // in name_
  void hand_batch();
  void forget_words();                                // where there are many that the vocabulary lacks
  std::string_view name_of(Term term);                                      // valid until the next call

  const data::Names* imposed_;
  VocabularyRules rules_;
  data::Share share_;
  data::Names stop_list_;
  std::filesystem::path documents_in_;
  bool keep_unknown_, keep_case_, whole_;  // whole_: documents are placed when all are read

  data::Names words_;
  std::vector<bool> stops_;              // by word
  PairNumbers pairs_;
  std::vector<Term> pair_terms_;         // of frequent pairs, by pair; kNone for others
  std::vector<Fate> fates_;              // by term
  std::vector<std::uint32_t> numbers_;   // in the vocabulary, by term that is kept
  std::vector<std::uint64_t> tokens_;    // by term, where counts are needed
  std::vector<std::uint32_t> in_documents_, last_document_;

  std::uint64_t batch_ = 0;              // documents; 0: all are kept
  std::function<void(const Corpus& batch)> take_;
  bool numbered_ = false;                // the format has numbers for words
  std::uint32_t read_ = 0, counted_ = 0;  // documents
  std::vector<Term> document_, joined_, kept_;
  Documents gathered_;                   // of all members, where whole_
  std::vector<std::string> gathered_names_;
  std::string name_;
  Fnv1a digest_;
  Corpus corpus_;
  Reading reading_;
};

}  // namespace shoal::text
