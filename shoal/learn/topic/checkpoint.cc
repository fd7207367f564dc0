#include "shoal/learn/topic/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <system_error>

#include "shoal/core/error.h"
#include "shoal/data/read.h"
#include "shoal/learn/tensor_file.h"

namespace shoal::learn::topic {
namespace {

namespace fs = std::filesystem;
constexpr std::uint16_t kChannel = 24;
constexpr const char* kFolder = "checkpoint";  // in the model's
constexpr const char* kHint = "train anew into another folder, or give the files and flags of that run";

struct Place {                     // of a file
  unsigned sweep;
  std::uint32_t rank, size;
  auto operator<=>(const Place&) const = default;
};
std::string name_of(const Place& place) {
  return "sweep-" + std::to_string(place.sweep) + ".rank-" + std::to_string(place.rank) + "-of-" + std::to_string(place.size) + ".safetensors";
}

std::optional<Place> place_of(std::string_view name) {
  Place place{};
  const auto number = [&](std::string_view before, auto& into) {
    if (!name.starts_with(before)) return false;
    name.remove_prefix(before.size());
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), into);
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
    return error == std::errc();
  };
  if (number("sweep-", place.sweep) && number(".rank-", place.rank) && number("-of-", place.size) && name == ".safetensors" &&
      place.rank < place.size)
    return place;
  return std::nullopt;
}

std::set<Place> places_in(const fs::path& folder) {
  std::set<Place> places;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (const auto place = place_of(entry.path().filename().string())) places.insert(*place);
  }
  return places;
}

struct FilePart {                      // one file
  std::vector<std::uint32_t> topics, lengths;
  std::vector<std::uint32_t> turns;      // data::Share's
  Prior prior;
};

FilePart read_part(const fs::path& file, std::uint32_t size) {
  TensorFile tensors = read_tensor_file(file);
  const auto numbers = [&](const char* name) -> std::vector<std::uint32_t>& {
    const auto found = tensors.others.find(name);
    auto* const tensor = found == tensors.others.end() ? nullptr : std::get_if<TensorOf<std::uint32_t>>(&found->second);
    if (tensor == nullptr) throw Error(Code::invalid_argument, std::string("has no ") + name, file.string(), kHint);
    return tensor->values;
  };
  FilePart part{std::move(numbers("topics")), std::move(numbers("lengths")), {}, {}};
  if (tensors.others.contains("turns")) part.turns = std::move(numbers("turns"));
  if (std::ranges::any_of(part.turns, [size](std::uint32_t of) { return of >= size; }))
    throw Error(Code::invalid_argument, "has documents of a member that is none", file.string(), kHint);
  const auto found = tensors.others.find("prior");
  const auto* const prior = found == tensors.others.end() ? nullptr : std::get_if<TensorOf<double>>(&found->second);
  if (prior == nullptr || prior->values.size() < 2) throw Error(Code::invalid_argument, "has no prior", file.string(), kHint);
  if (!std::ranges::all_of(prior->values, [](double value) { return value > 0 && std::isfinite(value); }))
    throw Error(Code::invalid_argument, "has a prior that is none", file.string(), kHint);
  part.prior = {std::vector<double>(prior->values.begin(), prior->values.end() - 1), prior->values.back()};
  return part;
}

}  // namespace

Checkpoints::Checkpoints(net::Transport& transport, fs::path folder)
    : folder_(std::move(folder) / kFolder), rank_(transport.rank()), size_(transport.size()), tables_(transport, {.channel = kChannel}),
      worker_(tables_.worker()), by_rank_(worker_, "topic-checkpoints", transport.size() + std::size_t{1}) {}

Checkpoints::~Checkpoints() {
  try {
    tables_.leave();
  } catch (const Error&) {  // the job has failed: who waits for it hears why
  }
}

std::optional<Kept> Checkpoints::newest(const text::Corpus& corpus, std::uint32_t topics, const data::Share& dealt) {
  // What this member can read: its own files of so many members, and sweeps of which the files of all members are here.
  const std::set<Place> here = places_in(folder_);
  std::map<unsigned, std::uint32_t> sizes;  // by sweep: the number of members that it is of
  for (const Place& place : here) {
    const bool own = place.size == size_ && place.rank == rank_;
    bool whole = true;
    for (std::uint32_t rank = 0; rank < place.size; ++rank) whole &= here.contains({place.sweep, rank, place.size});
    if (own || whole) sizes[place.sweep] = own ? size_ : std::max(sizes[place.sweep], place.size);
  }
  std::vector<double> newest(size_ + std::size_t{1});
  newest[rank_] = sizes.empty() ? 0 : sizes.rbegin()->first;
  newest = by_rank_.sum(newest);
  const auto sweep = static_cast<unsigned>(*std::min_element(newest.begin(), newest.end() - 1));
  std::vector<double> missing(size_ + std::size_t{1});
  missing[rank_] = sweep != 0 && !sizes.contains(sweep) ? 1 : 0;
  missing = by_rank_.sum(missing);
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    if (missing[rank] != 0)
      throw Error(Code::invalid_argument, "rank " + std::to_string(rank) + " has nothing of sweep " + std::to_string(sweep), folder_.string(), kHint);
  }
  if (sweep == 0) {
    const auto some = std::max_element(newest.begin(), newest.end() - 1), none = std::min_element(newest.begin(), newest.end() - 1);
    if (*some == 0) return std::nullopt;
    throw Error(Code::invalid_argument,
                "rank " + std::to_string(none - newest.begin()) + " has no whole checkpoint, and rank " + std::to_string(some - newest.begin()) + " has one",
                folder_.string(), "bring all files together; or remove the folder to begin anew");
  }

  const std::uint32_t size = sizes.at(sweep);
  Kept kept{sweep, {}, {}};
  const auto refuse = [&](const Place& place) {
    throw Error(Code::invalid_argument, "is of other documents or of another number of topics", (folder_ / name_of(place)).string(), kHint);
  };
  const auto read = [&](std::uint32_t rank) { return read_part(folder_ / name_of({sweep, rank, size}), size); };
  FilePart mine = size == size_ ? read(rank_) : FilePart();
  if (size == size_ && mine.turns == dealt.turns) {
    const text::Documents& documents = corpus.documents;
    bool same = mine.topics.size() == documents.tokens() && mine.lengths.size() == documents.size();
    for (std::size_t d = 0; same && d < documents.size(); ++d) same = mine.lengths[d] == documents.offsets[d + 1] - documents.offsets[d];
    if (!same) refuse({sweep, rank_, size_});
    kept.prior = std::move(mine.prior);
    kept.topics = std::move(mine.topics);
  } else {
    // Document by document as they were dealt then, those that are this member's now.
    mine = {};
    std::vector<FilePart> parts;
    for (std::uint32_t rank = 0; rank < size; ++rank) parts.push_back(read(rank));
    const data::Share then{0, size, parts.front().turns};
    std::vector<std::uint64_t> documents(size), tokens(size);
    for (std::uint64_t document = 0; document < corpus.all_documents; ++document) {
      const std::uint32_t owner = then.owner(document);
      FilePart& part = parts[owner];
      if (documents[owner] == part.lengths.size()) refuse({sweep, owner, size});
      const std::uint32_t length = part.lengths[documents[owner]++];
      if (tokens[owner] + length > part.topics.size()) refuse({sweep, owner, size});
      const auto from = part.topics.begin() + static_cast<std::ptrdiff_t>(tokens[owner]);
      if (dealt.holds(document)) kept.topics.insert(kept.topics.end(), from, from + length);
      tokens[owner] += length;
    }
    if (kept.topics.size() != corpus.documents.tokens()) refuse({sweep, 0, size});
    kept.prior = std::move(parts.front().prior);
  }
  if (kept.prior.alpha.size() != topics || std::ranges::any_of(kept.topics, [&](Topic topic) { return topic >= topics; }))
    refuse({sweep, rank_, size});
  return kept;
}

void Checkpoints::write(const Kept& kept, const text::Documents& documents, const data::Share& dealt) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw Error(Code::io, "cannot be made: " + error.message(), folder_.string());
  const ViewOf<std::uint32_t> topics{{kept.of_tokens().size()}, kept.of_tokens()};
  TensorOf<std::uint32_t> lengths{{documents.size()}, {}};
  for (std::size_t d = 0; d < documents.size(); ++d)
    lengths.values.push_back(static_cast<std::uint32_t>(documents.offsets[d + 1] - documents.offsets[d]));
  TensorOf<double> prior{{kept.prior.alpha.size() + 1}, kept.prior.alpha};
  prior.values.push_back(kept.prior.beta);
  TensorFile file;
  file.others = {{"topics", topics}, {"lengths", std::move(lengths)}, {"prior", std::move(prior)}};
  if (!dealt.turns.empty()) file.others.emplace("turns", TensorOf<std::uint32_t>{{dealt.turns.size()}, dealt.turns});
  write_tensor_file(folder_ / name_of({kept.sweeps, rank_, size_}), file);
  complete();  // all have theirs
  for (const Place& place : places_in(folder_)) {
    if (place.sweep < kept.sweeps) fs::remove(folder_ / name_of(place), error);
  }
}

bool Checkpoints::any(const fs::path& folder) { return !places_in(folder / kFolder).empty(); }

void Checkpoints::complete() { by_rank_.sum(std::vector<double>(size_ + std::size_t{1})); }

void Checkpoints::remove(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder / kFolder, error);
}

}  // namespace shoal::learn::topic
