// Restoring a table: which snapshot, who reads which part, are all of them whole; then rows go to their servers. Workers tell each other what
// they see through a table of numbers, so that there is no protocol of its own for it.
#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/table/part_file.h"
#include "shoal/table/tables.h"

namespace shoal::table {
namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<std::int64_t>;

// Numbers of all workers, to all workers.
class Gathering {
 public:
  Gathering(Worker by, std::uint32_t worker, std::uint32_t workers)
      : table_(by.open<std::int64_t>({.name = "restored/seen", .width = workers, .consistency = Bsp{}})), worker_(worker), workers_(workers) {}

  // By all workers, each with as many numbers. Number i of worker w is at [i * workers + w].
  Numbers gather(const Numbers& mine) {
    std::vector<Key> keys(mine.size());
    for (Key key = 0; key < keys.size(); ++key) keys[key] = key;
    Numbers values(mine.size() * workers_), all(values.size());
    for (std::size_t i = 0; i < mine.size(); ++i) values[i * workers_ + worker_] = mine[i];
    table_.add(keys, values);
    table_.barrier();
    table_.read(keys, all);
    for (std::int64_t& value : values) value = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(value));  // for the next time
    table_.add(keys, values);
    table_.barrier();
    return all;
  }

 private:
  Table<std::int64_t> table_;
  const std::uint32_t worker_, workers_;
};

void require_same(const Spec& spec, const Cut& cut, const fs::path& folder) {
  const auto refuse = [&](const std::string& there, const std::string& here) {
    throw Error(Code::invalid_argument, "a snapshot with " + there + ", table " + spec.name + " has " + here, folder.string());
  };
  const Spec& saved = cut.spec;
  if (saved.width != spec.width) refuse("rows of " + std::to_string(saved.width), std::to_string(spec.width));
  if (saved.type != spec.type) refuse(shoal::name(saved.type), shoal::name(spec.type));
  if (!same_kind(saved.rule, spec.rule)) refuse("the rule " + name(saved.rule), name(spec.rule));
  const Initial &one = saved.initial, &other = spec.initial;
  if (one.kind != other.kind || one.a != other.a || one.b != other.b || one.seed != other.seed) refuse("other initial values", "its own");
}

template <class T>
class Restoring {
 public:
  Restoring(const Worker& by, Copy<T>& copy, std::uint32_t worker, const Servers& servers, const Spec& spec, fs::path folder)
      : copy_(copy), worker_(worker), me_(servers.all_workers().first_of(servers.rank()) + worker), servers_(servers), spec_(spec),
        folder_(std::move(folder)), gathering_(by, me_, servers.all_workers().size()) {}

  // What all have agreed on, each part having been looked at by who is to read it.
  Cut agree() {
    const Cut cut = newest();
    choose_parts(cut);
    run([&] {
      for (const std::uint32_t part : parts_) each_chunk(cut, part, [](const Bytes&) {});
    });
    const Numbers failed = gathering_.gather({failure_ ? 1 : 0});
    throw_if_any(failed);
    return cut;
  }
  void put(const Cut& cut) {
    constexpr std::size_t under_way = 32;  // messages
    for (const std::uint32_t part : parts_) {
      each_chunk(cut, part, [&](const Bytes& chunk) {
        const std::size_t rows = chunk.size() / chunk_row_bytes(spec_);
        copy_.in_turn(worker_, Step::put, servers_.patience(), [&] {
          copy_.put({reinterpret_cast<const Key*>(chunk.data()), rows},
                    {reinterpret_cast<const T*>(chunk.data() + rows * sizeof(Key)), (chunk.size() - rows * sizeof(Key)) / sizeof(T)});
        });
        until_at_most(under_way);
      });
    }
    until_at_most(0);
  }
  void until_at_most(std::size_t messages) {
    servers_.patience().until([&] { return copy_.assigning() <= messages; }, copy_, "servers to take rows of table ", spec_.name);
  }
  bool leads() const { return leads_; }            // one of all: it has read the snapshot's rule

 private:
  Cut newest() {
    std::optional<Cut> here;
    run([&] {
      here = read_index(folder_);
      if (here) require_same(spec_, *here, folder_);
    });
    const std::int64_t id = here ? static_cast<std::int64_t>(std::stoull(here->id, nullptr, 16)) : 0;
    const std::uint32_t all = servers_.all_workers().size();
    const auto found = gathering_.gather({failure_ ? 1 : 0, here ? here->time : 0, here ? 1 : 0, id});
    throw_if_any({found.begin(), found.begin() + all});
    std::optional<std::uint32_t> newest;
    for (std::uint32_t worker = 0; worker < all; ++worker) {
      if (found[2 * all + worker] == 1 && (!newest || found[all + worker] > found[all + *newest])) newest = worker;
    }
    if (!newest) throw Error(Code::invalid_argument, "there is no snapshot of a table", folder_.string());
    leads_ = *newest == me_;
    const bool same = here && id == found[3 * all + *newest];
    const auto told = gathering_.gather({leads_ ? here->clock : 0, leads_ ? here->parts : 0});
    Cut cut{spec_, told[*newest], spec_.rule, {}, static_cast<std::uint32_t>(told[all + *newest]), found[all + *newest]};
    cut.id = hexadecimal(static_cast<std::uint64_t>(found[3 * all + *newest]));
    return same ? *here : cut;
  }

  // Each part is read by one of those who see it, of whom so far reads least.
  void choose_parts(const Cut& cut) {
    Numbers seen(cut.parts);
    std::error_code none;
    for (std::uint32_t part = 0; part < cut.parts; ++part) seen[part] = fs::exists(part_file(folder_, cut, part), none);
    const std::uint32_t all = servers_.all_workers().size();
    const Numbers by_all = gathering_.gather(seen);
    std::vector<std::size_t> load(all);
    for (std::uint32_t part = 0; part < cut.parts; ++part) {
      std::optional<std::uint32_t> reader;
      for (std::uint32_t worker = 0; worker < all; ++worker) {
        if (by_all[part * all + worker] != 0 && (!reader || load[worker] < load[*reader])) reader = worker;
      }
      if (!reader) {
        throw Error(Code::invalid_argument, "no worker sees this part of the snapshot", part_file(folder_, cut, part).string(),
                    "the folder must be visible where it was written, or shared");
      }
      ++load[*reader];
      if (*reader == me_) parts_.push_back(part);
    }
  }

  template <class Visit>
  void each_chunk(const Cut& cut, std::uint32_t part, const Visit& visit) {
    PartReader reader(folder_, cut, part);
    for (Bytes chunk = reader.next(); !chunk.empty(); chunk = reader.next()) visit(chunk);
  }
  // What goes wrong here is kept until all have heard of it.
  template <class Do>
  void run(const Do& what) {
    try {
      what();
    } catch (const Error& error) {
      failure_ = error;
    }
  }
  void throw_if_any(const Numbers& failed) const {
    if (failure_) throw Error(*failure_);
    const auto first = std::ranges::find_if(failed, [](std::int64_t number) { return number != 0; });
    if (first == failed.end()) return;
    const net::Rank rank = servers_.all_workers().rank_of(static_cast<std::uint32_t>(first - failed.begin()));
    throw Error(Code::invalid_argument, "rank " + std::to_string(rank) + " cannot read its part of the snapshot", folder_.string(), "it says why");
  }
  static std::string hexadecimal(std::uint64_t number) {
    std::string text(16, '0');
    for (auto digit = text.rbegin(); number != 0; ++digit, number >>= 4) *digit = "0123456789abcdef"[number & 15];
    return text;
  }

  Copy<T>& copy_;
  const std::uint32_t worker_, me_;                // of this member's, of all
  const Servers& servers_;
  const Spec spec_;
  const fs::path folder_;
  Gathering gathering_;
  std::vector<std::uint32_t> parts_;               // that this worker reads
  std::optional<Error> failure_;
  bool leads_ = false;
};

}  // namespace

template <class T>
Clock Table<T>::restore(const std::string& path) {
  Restoring<T> restoring(by_, *copy_, worker_, *servers_, spec_, fs::absolute(path));
  const Cut cut = restoring.agree();
  barrier();                                       // nothing is under way
  if (restoring.leads()) {
    in_turn(Step::reset, [&] { copy_->reset(); });
    restoring.until_at_most(0);
  }
  barrier();
  restoring.put(cut);
  go_on_from(cut.clock);
  if (restoring.leads() && spec_.rule.steps()) this->rule(cut.rule);
  barrier();
  return cut.clock;
}
template Clock Table<float>::restore(const std::string&);
template Clock Table<double>::restore(const std::string&);
template Clock Table<std::int32_t>::restore(const std::string&);
template Clock Table<std::int64_t>::restore(const std::string&);

}  // namespace shoal::table
