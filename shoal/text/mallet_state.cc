#include "shoal/text/mallet_state.h"

#include <algorithm>
#include <string>

#include "shoal/core/error.h"
#include "shoal/data/number.h"

namespace shoal::text {
namespace {

constexpr const char* kForm = "a line is: doc source pos typeindex type topic";
constexpr std::uint64_t kMostTopics = 1 << 30;

[[noreturn]] void refuse_line(const data::Lines& lines, const std::string& what, const std::string& hint) {
  throw Error(Code::invalid_argument, what, lines.place(), hint);
}

// The field at the end of a line, which loses it.
std::string_view last_field(std::string_view& line) {
  while (!line.empty() && data::is_space(line.back())) line.remove_suffix(1);
  const std::size_t before = line.find_last_of(" \t");
  const std::string_view field = line.substr(before + 1);
  line.remove_suffix(field.size());
  return field;
}

bool is_number(std::string_view field, std::uint64_t& number) {
  const char* at = field.data();
  const char* const end = at + field.size();
  return data::scan_index(at, end, number) == data::Scan::fine && at == end;
}

// "#alpha : 0.1 0.2", "#beta : 0.01"
void read_header(const data::Lines& lines, std::string_view line, MalletPrior& prior) {
  const bool alpha = line.starts_with("#alpha"), beta = line.starts_with("#beta");
  if (!alpha && !beta) return;
  const char* const end = line.data() + line.size();
  const char* at = std::find(line.data(), end, ':');
  if (at != end) ++at;
  for (at = data::skip_spaces(at, end); at != end; at = data::skip_spaces(at, end)) {
    double value = 0;
    const char* const begin = at;
    if (data::scan_real(at, end, value) != data::Scan::fine || (at != end && !data::is_space(*at)) || !(value > 0)) {
      refuse_line(lines, data::quote({begin, std::find_if(begin, end, data::is_space)}) + " is no prior", "numbers above 0 stand behind the colon");
    }
    if (alpha) {
      prior.alpha.push_back(value);
    } else {
      prior.beta = value;
    }
  }
}

}  // namespace

data::Verdict parse_mallet_token(std::string_view line, MalletToken& token) {
  if (line.find_first_not_of(" \t") == std::string_view::npos) return {};
  std::string_view left = line;  // from its end: a source may have spaces
  std::uint64_t type = 0, topic = 0;
  bool fine = is_number(last_field(left), topic);
  token.word = last_field(left);
  fine = fine && !token.word.empty() && is_number(last_field(left), type) && is_number(last_field(left), token.position);
  const std::size_t begin = std::min(left.find_first_not_of(" \t"), left.size());
  const std::size_t space = std::min(left.find_first_of(" \t", begin), left.size());
  const std::size_t source = std::min(left.find_first_not_of(" \t", space), left.size());
  fine = fine && is_number(left.substr(begin, space - begin), token.document) && source < left.size();
  token.source = left.substr(source, left.find_last_not_of(" \t") + 1 - source);
  if (!fine) return data::Verdict::refused({data::Reason::fields, data::quote(line) + " is no token", kForm});
  if (topic >= kMostTopics) return data::Verdict::refused({data::Reason::range, "topic " + std::to_string(topic) + " is beyond 1073741823", kForm});
  token.topic = static_cast<std::uint32_t>(topic);
  return {.sample = true};
}

MalletPrior read_mallet_state(data::Lines& lines, Gathering& gathering, std::vector<std::uint32_t>* topics) {
  MalletPrior prior;
  MalletToken token;
  std::uint64_t document = 0;
  bool open = false;
  std::string name;
  for (std::string_view line; lines.next(line);) {
    if (line.starts_with('#') && !open) {
      read_header(lines, line, prior);
      continue;
    }
    const data::Verdict verdict = parse_mallet_token(line, token);
    if (verdict.fault) refuse_line(lines, verdict.fault->what, verdict.fault->hint);
    if (!verdict.sample) continue;
    if (!prior.alpha.empty() && token.topic >= prior.alpha.size()) {
      refuse_line(lines, "there is no topic " + std::to_string(token.topic),
             "the header has alpha of " + std::to_string(prior.alpha.size()) + " topics, from 0");
    }
    if (open && token.document != document) {
      if (token.document < document) {
        refuse_line(lines, "document " + std::to_string(token.document) + " stands after " + std::to_string(document),
               "tokens of a document stand together");
      }
      gathering.end_document(name);
      gathering.empty_documents(document + 1, token.document);
    }
    if (!open || token.document != document) name = token.source == "NA" ? std::to_string(token.document) : std::string(token.source);
    if (!open) gathering.empty_documents(0, token.document);
    open = true;
    document = token.document;
    gathering.add(token.word);
    if (topics != nullptr) topics->push_back(token.topic);
  }
  if (open) gathering.end_document(name);
  return prior;
}

MalletState read_mallet_state(const std::filesystem::path& file) {
  MalletState state;
  data::Lines lines({file});
  Gathering gathering({.rules = {.stop_words = "none"}}, {}, "none");
  state.prior = read_mallet_state(lines, gathering, &state.topics);
  std::tie(state.corpus, state.reading) = gathering.finish({file}, "MALLET's state", true);
  return state;
}

}  // namespace shoal::text
