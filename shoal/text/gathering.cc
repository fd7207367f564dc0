#include "shoal/text/gathering.h"

#include <algorithm>

#include "shoal/core/error.h"
#include "shoal/text/stop_words.h"

namespace shoal::text {
namespace {

constexpr char kJoint = '_';
constexpr std::size_t kForgetAt = 1 << 20;  // words: some 100 MB
constexpr std::uint32_t kMostDocuments = 0xFFFFFFFE;
constexpr std::uint64_t kMostEmpty = 1 << 24;  // in a row, where they are to have lines

Documents documents_for(const std::filesystem::path& folder) { return folder.empty() ? Documents() : Documents::in(folder); }

}  // namespace

Gathering::Gathering(const Source& source, const data::Share& share, std::string_view default_stop_words)
    : imposed_(source.vocabulary),
      rules_(source.rules),
      share_(share),
      stop_list_(read_stop_words(rules_.stop_words.empty() ? default_stop_words : std::string_view(rules_.stop_words))),
      documents_in_(source.documents_in),
      keep_unknown_(source.keep_unknown),
      keep_case_(source.tokens.keep_case),
      whole_(imposed_ == nullptr && rules_.need_counts()),
      gathered_(whole_ ? documents_for(documents_in_) : Documents()) {
  if (share.member >= share.members) {
    throw Error(Code::invalid_argument, "there is no member " + std::to_string(share.member) + " of " + std::to_string(share.members), {},
                "members count from 0");
  }
  if (imposed_ != nullptr) corpus_.vocabulary = *imposed_;
  corpus_.documents = documents_for(documents_in_);
  reading_.rules = rules_;
}

void Gathering::hand_over(std::uint64_t documents, std::function<void(const Corpus& batch)> take) {
  batch_ = documents;
  take_ = std::move(take);
}

void Gathering::hand_batch() {
  corpus_.documents.finish();
  take_(corpus_);
  corpus_.documents = documents_for(documents_in_);
  corpus_.names.clear();
  forget_words();
}

void Gathering::forget_words() {
  if (numbered_ || words_.size() + std::size_t{pairs_.size()} < kForgetAt) return;
  words_ = {};
  stops_.clear();
  pairs_ = {};
  fates_.clear();
  numbers_.clear();
}

bool Gathering::stops(std::string_view word) const {
  return stop_list_.size() > 0 && (stop_list_.find(word) || (keep_case_ && stop_list_.find(lower(word))));
}

void Gathering::meet_word(std::string_view word) {
  stops_.push_back(stops(word));
  if (rules_.pairs != Pairs::all) meet(word);
}

void Gathering::meet(std::string_view name) {
  std::uint32_t number = kNone;
  Fate fate = Fate::kept;
  if (imposed_ != nullptr) {
    const auto known = imposed_->find(name);
    fate = known ? Fate::kept : rules_.pairs != Pairs::all && stops_.back() ? Fate::stop_word : Fate::unknown;
    number = known.value_or(kNone);
  } else if (rules_.pairs != Pairs::all && stops_.back()) {
    fate = Fate::stop_word;
  } else if (!whole_) {
    number = corpus_.vocabulary.number(name);
  }
  fates_.push_back(fate);
  numbers_.push_back(number);
  if (fate != Fate::kept) ++reading_.dropped[static_cast<std::size_t>(fate)].words;
  if (!whole_) return;
  tokens_.push_back(0);
  in_documents_.push_back(0);
  last_document_.push_back(kNone);
}

Gathering::Term Gathering::word_called(std::string_view name) {
  const std::uint32_t word = words_.number(name);
  if (word == stops_.size()) meet_word(name);
  return word;
}

void Gathering::have_words(data::Names words) {
  words_ = std::move(words);
  numbered_ = true;
  for (std::uint32_t word = 0; word < words_.size(); ++word) meet_word(words_[word]);
}

void Gathering::add(std::string_view word) { document_.push_back(word_called(word)); }

void Gathering::end_document(std::string_view name) {
  if (read_ == kMostDocuments) throw Error(Code::invalid_argument, "more than 4294967294 documents");
  ++read_;
  if (rules_.pairs == Pairs::all) make_pairs();
  if (rules_.pairs == Pairs::frequent && !whole_) {
    join(document_);
    document_.swap(joined_);
  }
  if (name.empty()) {
    name_ = std::to_string(read_);
    name = name_;
  }
  if (whole_) {
    if (rules_.pairs != Pairs::frequent) count(document_);
    gathered_.append(document_);
    gathered_names_.emplace_back(name);
  } else {
    place(document_, name);
    if (batch_ > 0 && corpus_.documents.size() == batch_) hand_batch();
  }
  document_.clear();
}

void Gathering::empty_documents(std::uint64_t first, std::uint64_t end) {
  if (!keep_unknown_) reading_.empty += end - first;
  if (keep_unknown_ && end - first > kMostEmpty)
    throw Error(Code::invalid_argument, std::to_string(end - first) + " documents in a row without a word", {}, "are the numbers of documents right?");
  for (; keep_unknown_ && first < end; ++first) end_document(std::to_string(first));
}

// Words that a stop word stands between do not follow each other.
void Gathering::make_pairs() {
  joined_.clear();
  for (std::size_t i = 0; i + 1 < document_.size(); ++i) {
    const std::uint32_t first = document_[i], second = document_[i + 1];
    if (stops_[first] || stops_[second]) continue;
    const std::uint32_t pair = pairs_.number(first, second);
    if (pair == fates_.size()) meet(name_of(pair));
    joined_.push_back(pair);
  }
  document_.swap(joined_);
}

Gathering::Term Gathering::joined(Term first, Term second) {
  if (stops_[first] || stops_[second]) return kNone;
  if (imposed_ == nullptr) {
    const auto pair = pairs_.find(first, second);
    return pair ? pair_terms_[*pair] : kNone;
  }
  const std::string_view name = joined_name(first, second);
  return imposed_->find(name) ? word_called(name) : kNone;
}

void Gathering::join(std::span<const Term> words) {
  joined_.clear();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Term pair = i + 1 < words.size() ? joined(words[i], words[i + 1]) : kNone;
    joined_.push_back(pair == kNone ? words[i] : pair);
    if (pair == kNone) continue;
    ++reading_.pair_tokens;
    ++i;
  }
}

void Gathering::count(std::span<const Term> document) {
  for (const Term term : document) {
    ++tokens_[term];
    if (last_document_[term] == counted_) continue;
    last_document_[term] = counted_;
    ++in_documents_[term];
  }
  ++counted_;
}

void Gathering::join_frequent_pairs() {
  std::vector<std::uint32_t> times;  // by pair
  for (std::size_t d = 0; d < gathered_.size(); ++d) {
    const auto document = gathered_[d];
    for (std::size_t i = 0; i + 1 < document.size(); ++i) {
      if (stops_[document[i]] || stops_[document[i + 1]]) continue;
      const std::uint32_t pair = pairs_.number(document[i], document[i + 1]);
      if (pair == times.size()) times.push_back(0);
      if (times[pair] < kNone) ++times[pair];
    }
  }
  pair_terms_.assign(times.size(), kNone);
  for (std::uint32_t pair = 0; pair < pairs_.size(); ++pair) {
    if (times[pair] < rules_.pair_tokens) continue;
    const auto [first, second] = pairs_[pair];
    pair_terms_[pair] = word_called(joined_name(first, second));
    ++reading_.pairs;
  }
  Documents all = std::move(gathered_);
  gathered_ = documents_for(documents_in_);
  for (std::size_t d = 0; d < all.size(); ++d) {
    join(all[d]);
    count(joined_);
    gathered_.append(joined_);
  }
  gathered_.finish();
}

void Gathering::place(std::span<const Term> document, std::string_view name) {
  kept_.clear();
  for (const Term term : document) {
    if (fates_[term] != Fate::kept) {
      ++reading_.dropped[static_cast<std::size_t>(fates_[term])].tokens;
      if (keep_unknown_ && fates_[term] == Fate::unknown) kept_.push_back(kUnknownWord);
      continue;
    }
    const std::uint32_t number = numbers_[term];
    if (number >= corpus_.frequencies.size()) corpus_.frequencies.resize(corpus_.vocabulary.size());
    ++corpus_.frequencies[number];
    kept_.push_back(number);
  }
  if (kept_.empty() && !keep_unknown_) {
    ++reading_.empty;
    return;
  }
  corpus_.all_tokens += kept_.size();
  digest_.add_words(std::as_bytes(std::span(kept_)));
  const std::uint64_t end = ~kept_.size();  // no two words
  digest_.add_words(std::as_bytes(std::span(&end, 1)));
  if (!share_.holds(corpus_.all_documents++)) return;
  corpus_.documents.append(kept_);
  std::string& called = corpus_.names.emplace_back(name);
  std::replace_if(called.begin(), called.end(), [](unsigned char c) { return c < ' ' || c == 127; }, ' ');
}

std::string_view Gathering::joined_name(std::uint32_t first, std::uint32_t second) {
  return name_.assign(words_[first]).append(1, kJoint).append(words_[second]);
}

std::string_view Gathering::name_of(Term term) {
  if (rules_.pairs != Pairs::all) return words_[term];
  const auto [first, second] = pairs_[term];
  return joined_name(first, second);
}

void Gathering::choose_words() {
  choose(rules_, gathered_.size(), tokens_, in_documents_, fates_);
  for (Term term = 0; term < fates_.size(); ++term) {
    const Fate fate = fates_[term];
    if (fate == Fate::kept) {
      numbers_[term] = corpus_.vocabulary.number(name_of(term));
    } else if (fate != Fate::stop_word) {  // which were counted when they were met
      ++reading_.dropped[static_cast<std::size_t>(fate)].words;
    }
  }
}

std::pair<Corpus, Reading> Gathering::finish(std::vector<std::filesystem::path> files, std::string form, bool ordered) {
  if (whole_) {
    gathered_.finish();
    if (rules_.pairs == Pairs::frequent) join_frequent_pairs();
    choose_words();
    for (std::size_t d = 0; d < gathered_.size(); ++d) place(gathered_[d], gathered_names_[d]);
  }
  if (batch_ > 0 && corpus_.documents.size() > 0) hand_batch();
  if (corpus_.all_documents == 0) {
    throw Error(Code::invalid_argument, "no document has a word that is kept", files.front().string(), dropped(reading_));
  }
  corpus_.frequencies.resize(corpus_.vocabulary.size());
  corpus_.documents.finish();
  corpus_.documents.ordered = ordered;
  for (std::uint32_t word = 0; word < corpus_.vocabulary.size(); ++word) {
    digest_.add_bytes(std::as_bytes(std::span(corpus_.vocabulary[word])));
    digest_.add_bytes(std::as_bytes(std::span("\n", 1)));
  }
  corpus_.digest = digest_.value();
  reading_.files = std::move(files);
  reading_.form = std::move(form);
  reading_.documents = corpus_.all_documents;
  reading_.words = corpus_.vocabulary.size();
  reading_.tokens = corpus_.all_tokens - (keep_unknown_ ? reading_.dropped[static_cast<std::size_t>(Fate::unknown)].tokens : 0);
  reading_.kept = batch_ > 0 ? corpus_.all_documents : corpus_.documents.size();
  return {std::move(corpus_), std::move(reading_)};
}

}  // namespace shoal::text
