#include "shoal/table/tables.h"

#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/net/call.h"
#include "shoal/table/disk.h"
#include "shoal/table/mail.h"

namespace shoal::table {
namespace {

std::vector<net::Rank> or_all(std::vector<net::Rank> ranks, net::Rank size) {
  if (!ranks.empty()) return ranks;
  ranks.resize(size);
  std::iota(ranks.begin(), ranks.end(), net::Rank{0});
  return ranks;
}

}  // namespace

struct Tables::State : Servers {
  State(net::Transport& of_transport, const TablesOptions& options)
      : transport(of_transport), placement(or_all(options.servers, of_transport.size())),
        workers(or_all(options.workers, of_transport.size()), options.workers_a_member),
        waiting(of_transport, options.patience, [this] { return failure(); }), disk(options.disk), left(of_transport.size()), leaving(of_transport.size()) {}

  net::Rank rank() const override { return transport.rank(); }
  const Workers& all_workers() const override { return workers; }
  const Placement& all_shards() const override { return placement; }
  std::shared_ptr<Answers> ask(std::vector<std::vector<Message>> messages) override;
  void tell(const Message& message) override;
  const Waiting& patience() const override { return waiting; }

  void deliver(net::Rank from, Message message);
  net::Failure failure() const;  // of a member that did not say that it leaves
  void say_goodbye();
  void open(net::Rank from, const Message& message);
  Send send() {
    return [this](net::Rank to, std::vector<Message> messages) { mail->send(to, std::move(messages)); };
  }
  template <class T>
  std::shared_ptr<Copy<T>> open(const Spec& spec);

  net::Transport& transport;
  const Placement placement;
  const Workers workers;
  const Waiting waiting;
  std::unique_ptr<Mail> mail;                              // made and destroyed on the loop
  std::map<std::uint64_t, std::unique_ptr<Server>> served;  // on the loop, as the next two
  std::map<std::uint64_t, std::shared_ptr<Reader>> read;
  std::map<std::uint64_t, std::shared_ptr<Answers>> opening;
  std::map<std::uint64_t, std::shared_ptr<Answers>> asked;  // by the number of the question
  std::atomic<std::uint64_t> questions{0};
  Disk own_disk;
  const OnDisk disk;                                       // or own_disk
  std::shared_ptr<Saves> saves;                            // where this member serves; on the loop
  std::vector<std::atomic<bool>> left;                     // by rank: asks for nothing more
  Answers leaving;                                         // hears of them
  bool said_goodbye = false;                               // by this member; its thread that ends it

  std::mutex mutex;                                        // guards opened; held while one is opened, so that a second worker waits for it
  std::map<std::uint64_t, std::pair<Spec, std::shared_ptr<Reader>>> opened;
};

net::Failure Tables::State::failure() const {
  for (net::Rank rank = 0; rank < transport.size(); ++rank) {
    if (left[rank]) continue;
    if (net::Failure why = mail->failure(rank)) return why;
  }
  return nullptr;
}

void Tables::State::deliver(net::Rank from, Message message) try {
  const std::uint64_t id = message.header.table;
  const auto refuse = [&](const char* what) {
    throw Error(Code::mismatch, "rank " + std::to_string(from) + " speaks of a table that " + what, "tables", "run the same program on all members");
  };
  switch (message.header.kind) {
    case Kind::open: return open(from, message);
    case Kind::opened:
    case Kind::fetched:
    case Kind::saved:
    case Kind::refused: {
      if (const std::uint64_t question = message.header.sequence; question != 0) {
        const auto answers = asked.find(question);
        if (answers == asked.end()) return refuse("nobody here asked about");
        answers->second->take(from, std::move(message));
        if (answers->second->complete()) asked.erase(answers);
        return;
      }
      const auto waiting_for = opening.find(id);
      return waiting_for == opening.end() ? refuse("nobody here opens") : waiting_for->second->take(from, std::move(message));
    }
    case Kind::leaving:
      left[from] = true;
      for (const auto& [table, reader] : read) reader->leaves(from);
      for (const auto& [table, shard] : served) shard->leaves(from);
      return leaving.take(from, std::move(message));
    case Kind::keep: return saves ? saves->keep(message) : refuse("is not served here");
    default: break;
  }
  if (message.header.kind <= kLastToServer) {
    const auto shard = served.find(id);
    return shard == served.end() ? refuse("is not served here") : shard->second->take(from, std::move(message));
  }
  const auto copy = read.find(id);
  return copy == read.end() ? refuse("nobody here has opened") : copy->second->take(from, std::move(message));
} catch (const Error& error) {
  transport.fail(error);
}

void Tables::State::open(net::Rank from, const Message& message) {
  const Spec spec = spec_from(message.text());
  auto& shard = served[message.header.table];
  const auto idle = [this](net::Rank to) { return mail->unsent(to) == 0; };
  if (!shard) {
    shard = make_shard(spec, workers, transport.size(), send(), idle,
                       [this](net::Rank by, const Message& request, const Spec& of, Clock clock, const Rule& rule, std::unique_ptr<Image> image) {
                         if (saves) saves->begin(by, request, of, clock, rule, std::move(image));
                       },
                       [this] { return transport.now(); });
  }
  const std::string here = text_of(shard->spec());
  if (here == message.text()) shard->admit(from);
  mail->send(from, alone(here == message.text() ? Message::of_kind(Kind::opened, message.header.table)
                                                : Message::of_text(Kind::refused, message.header.table, here)));
}

std::shared_ptr<Answers> Tables::State::ask(std::vector<std::vector<Message>> messages) {
  const std::uint64_t number = ++questions;
  std::size_t count = 0;
  for (auto& of_shard : messages) {
    for (Message& message : of_shard) message.header.sequence = number;
    count += of_shard.size();
  }
  const auto answers = std::make_shared<Answers>(count);
  if (count > 0) transport.post([this, number, answers] { asked.emplace(number, answers); });
  for (std::size_t shard = 0; shard < messages.size(); ++shard) {
    if (!messages[shard].empty()) mail->send(placement.server(shard), std::move(messages[shard]));
  }
  return answers;
}

void Tables::State::tell(const Message& message) {
  for (std::size_t shard = 0; shard < placement.shards(); ++shard) mail->send(placement.server(shard), alone(message));
}

template <class T>
std::shared_ptr<Copy<T>> Tables::State::open(const Spec& spec) {
  check(spec, workers.size());
  const auto differs = [&](const std::string& other) {
    return Error(Code::mismatch, "opened as \"" + text_of(spec) + "\", but also as \"" + other + "\"", "table " + spec.name,
                 "describe it alike everywhere, or give it another name");
  };
  const std::lock_guard lock(mutex);
  const std::uint64_t id = id_of(spec);
  if (const auto known = opened.find(id); known != opened.end()) {
    if (text_of(known->second.first) != text_of(spec)) throw differs(text_of(known->second.first));
    return std::static_pointer_cast<Copy<T>>(known->second.second);
  }
  auto copy = std::make_shared<Copy<T>>(spec, workers, transport.rank(), placement, send(), [this] { return transport.now(); });
  const auto answers = std::make_shared<Answers>(placement.shards());
  transport.post([this, id, copy, answers] {
    read.insert_or_assign(id, copy);
    opening.insert_or_assign(id, answers);
  });
  for (std::size_t shard = 0; shard < placement.shards(); ++shard) {
    mail->send(placement.server(shard), alone(Message::of_text(Kind::open, id, text_of(spec))));
  }
  waiting.until([&] { return answers->complete(); }, *answers, "servers to open table " + spec.name);
  const bool refused = !answers->refused().empty();
  transport.post([this, id, refused] {
    opening.erase(id);
    if (refused) read.erase(id);
  });
  if (refused) throw differs(answers->refused());
  opened.emplace(id, std::pair(spec, copy));
  return copy;
}

Tables::Tables(net::Transport& transport, const TablesOptions& options) : state_(std::make_shared<State>(transport, options)) {
  const bool begun = net::call(transport, [state = state_, channel = options.channel] {
    const auto deliver = [raw = state.get()](net::Rank from, Message message) { raw->deliver(from, std::move(message)); };
    const auto drained = [raw = state.get()](net::Rank to) {
      for (const auto& [id, shard] : raw->served) shard->drained(to);
    };
    state->mail = std::make_unique<Mail>(state->transport, channel, deliver, drained);
    const OnDisk disk = state->disk ? state->disk : [raw = state.get()](std::function<void()> job) { raw->own_disk.run(std::move(job)); };
    for (std::uint32_t shard = 0; shard < state->placement.shards(); ++shard) {
      if (state->placement.server(shard) != state->transport.rank()) continue;
      state->saves = std::make_shared<Saves>(state->transport, disk, shard, static_cast<std::uint32_t>(state->placement.shards()),
                                             [raw = state.get()](net::Rank to, Message message) { raw->mail->send(to, alone(std::move(message))); });
    }
  });
  if (!begun) throw Error(Code::cancelled, "the transport has ended", "tables");
}

Tables::~Tables() {
  state_->say_goodbye();
  // Others may wait for what this member has said.
  const auto all_left = [&] {
    for (net::Rank rank = 0; rank < state_->transport.size(); ++rank) {
      if (state_->mail->unsent(rank) > 0) return false;
    }
    return true;
  };
  net::wait_for(state_->transport, [&] { return state_->transport.failure() || all_left(); }, net::kLoopAnswers);
  net::call(state_->transport, [state = state_] {
    state->mail.reset();
    if (state->saves) state->saves->end();
    state->served.clear();
    state->read.clear();
  });
}

void Tables::State::say_goodbye() {
  if (std::exchange(said_goodbye, true)) return;
  for (net::Rank rank = 0; rank < transport.size(); ++rank) {
    mail->send(rank, alone(Message::of_kind(Kind::leaving, 0)));
  }
}

void Tables::leave() {
  state_->say_goodbye();
  const Answers& leaving = state_->leaving;
  state_->waiting.until([&] { return leaving.complete(); }, leaving, "all members to leave their tables");
}

Worker Tables::worker(std::uint32_t index) {
  if (state_->workers.first_of(state_->transport.rank()) == state_->workers.size() || index >= state_->workers.a_member()) {
    throw Error(Code::invalid_argument, "rank " + std::to_string(state_->transport.rank()) + " has no worker " + std::to_string(index), "tables");
  }
  return {state_, index};
}

template <class T>
Table<T> Worker::open(Spec spec) {
  spec.type = kTypeOf<T>;
  return {spec, tables_->open<T>(spec), *this, index_, tables_};
}
template Table<float> Worker::open<float>(Spec);
template Table<double> Worker::open<double>(Spec);
template Table<std::int32_t> Worker::open<std::int32_t>(Spec);
template Table<std::int64_t> Worker::open<std::int64_t>(Spec);

}  // namespace shoal::table
