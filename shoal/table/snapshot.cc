#include "shoal/table/snapshot.h"

#include <chrono>
#include <numeric>
#include <system_error>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/random.h"
#include "shoal/table/saves.h"

namespace shoal::table {

Answers::Answers(std::vector<std::size_t> owed)
    : owed_(std::move(owed)), expected_(std::accumulate(owed_.begin(), owed_.end(), std::uint64_t{0})) {}

void Answers::loses(net::Rank member) {
  const std::size_t owed = std::exchange(owed_[member], 0);
  if (owed == 0) return;
  lost_ = true;
  refused_ = "rank " + std::to_string(member) + " was lost before it answered; try again";
  arrivals_.fetch_add(owed, std::memory_order_release);
}

void Answers::take(net::Rank from, Message message) {
  if (owed_[from] == 0) return;
  --owed_[from];
  if (message.header.kind == Kind::refused) {
    refused_ = message.text();
    if (message.header.sequence != 0) refused_ = "rank " + std::to_string(from) + ": " + refused_;
  } else {
    messages_.push_back(std::move(message));
  }
  arrivals_.fetch_add(1, std::memory_order_release);
}

Snapshot::Snapshot(std::shared_ptr<Servers> servers, std::shared_ptr<const Reader> table, const Spec& spec, Clock clock, const std::string& path)
    : servers_(std::move(servers)), table_(std::move(table)), folder_(path.empty() ? throw Error(Code::invalid_argument, "the folder has no name", "snapshot of table " + spec.name) : std::filesystem::absolute(path)),
      claim_(std::make_unique<const FolderClaim>(folder_)) {
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  cut_ = {spec, clock, spec.rule, random_hex(8), static_cast<std::uint32_t>(servers_->all_shards().shards()), now.count()};
  if (const auto there = read_index(folder_)) {
    if (there->spec.name != spec.name) {
      throw Error(Code::invalid_argument, "holds a snapshot of table " + there->spec.name, folder_.string(), "name another folder for table " + spec.name);
    }
    before_ = there->id;
  }
  answers_ = servers_->ask(*table_, {cut_.parts, alone(message(Kind::save, cut_.id))});
}

Message Snapshot::message(Kind kind, const std::string& id) const {
  Message message = SaveRequest{id, cut_.time, folder_}.message(kind, id_of(cut_.spec));
  message.header.clock = cut_.clock;
  return message;
}

bool Snapshot::is_written() const { return answers_->complete(); }

Clock Snapshot::wait() {
  if (over_) return cut_.clock;
  servers_->patience().until([&] { return is_written(); }, *answers_, "servers to write a snapshot of table ", cut_.spec.name);
  over_ = true;
  try {
    if (!answers_->refused().empty()) throw Error(answers_->lost() ? Code::peer_lost : Code::io, answers_->refused(), "", before_.empty() ? "" : "the snapshot before it is whole");
    cut_.rule = rule_from(answers_->messages().front().text());
    std::error_code none;
    std::filesystem::create_directories(folder_, none);  // where no server sees this disk
    write_index(folder_, cut_);
  } catch (const Error&) {
    servers_->tell(*table_, message(Kind::keep, before_));
    claim_.reset();
    throw;
  }
  servers_->tell(*table_, message(Kind::keep, cut_.id));
  claim_.reset();
  return cut_.clock;
}

}  // namespace shoal::table
