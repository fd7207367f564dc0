#include "shoal/table/tables.h"

#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/event.h"
#include "shoal/net/call.h"
#include "shoal/table/job_thread.h"
#include "shoal/table/mail.h"
#include "shoal/table/served.h"

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
      : transport(of_transport), survives(of_transport.on_peer_lost() == net::OnPeerLost::shrink),
        placement(or_all(options.servers, of_transport.size()), survives ? 2 : 1),
        workers(or_all(options.workers, of_transport.size()), options.workers_a_member),
        waiting(of_transport, options.patience, [this] { return failure(); }), disk(options.disk), run_functions(options.functions),
        cold(options.cold_rows.empty() ? nullptr : ColdFile::in(options.cold_rows)), left(of_transport.size()),
        lost(of_transport.size()), leaving(std::vector<std::size_t>(of_transport.size(), 1)) {}

  net::Rank rank() const override { return transport.rank(); }
  const Workers& all_workers() const override { return workers; }
  const Placement& all_shards() const override { return placement; }
  std::shared_ptr<Answers> ask(std::vector<std::vector<Message>> messages) override;
  void tell(const Message& message) override;
  const net::Waiting& patience() const override { return waiting; }

  void deliver(net::Rank from, Message message);
  net::Failure failure() const;  // of a member that did not say that it leaves
  void say_goodbye();
  void note_telemetry();
  void lose(net::Rank member);
  void open(net::Rank from, const Message& message);
  std::unique_ptr<Server> make_server(std::size_t shard, const Spec& spec);
  // To a shard's servers: all that live, or where `one` answers the first. Any thread.
  void send(std::size_t shard, std::vector<Message> messages, bool one);
  net::Rank first_of(std::size_t shard) const;
  void watch(Answers& answers);
  template <class T>
  std::shared_ptr<Copy<T>> open(const Spec& spec);

  net::Transport& transport;
  const bool survives;                                     // goes on without members that are lost
  const Placement placement;
  const Workers workers;
  const net::Waiting waiting;
  std::unique_ptr<Mail> mail;                              // made and destroyed on the loop
  Served served;                                           // on the loop, as the next ones
  std::unique_ptr<LastClocks> last_clocks;                 // of workers that are lost
  std::map<std::uint64_t, std::shared_ptr<Reader>> read;
  std::map<std::uint64_t, std::shared_ptr<Answers>> opening;
  std::map<std::uint64_t, std::shared_ptr<Answers>> asked;  // by the number of the question
  std::atomic<std::uint64_t> questions{0};
  std::optional<JobThread> own_disk{std::in_place}, own_functions{std::in_place};  // until the tables close
  const OnDisk disk, run_functions;                        // or those
  const std::shared_ptr<Functions> functions = std::make_shared<Functions>();
  const std::shared_ptr<ColdFile> cold;                    // of all tables
  std::map<std::size_t, std::shared_ptr<Saves>> saves;     // by shard that this member serves; on the loop
  std::vector<std::atomic<bool>> left;                     // by rank: asks for nothing more
  std::vector<std::atomic<bool>> lost;                     // by rank, while this member goes on
  Answers leaving;                                         // hears of them
  bool said_goodbye = false;                               // by this member; its thread that ends it

  std::mutex mutex;                                        // guards opened; held while one is opened, so that a second worker waits for it
  std::map<std::uint64_t, std::pair<Spec, std::shared_ptr<Reader>>> opened;
};

net::Failure Tables::State::failure() const {
  for (std::size_t shard = 0; shard < placement.shards(); ++shard) {
    std::size_t replica = 0;
    while (replica < placement.replicas() && lost[placement.server(shard, replica)]) ++replica;
    if (replica < placement.replicas()) continue;
    const std::string held = placement.replicas() == 1 ? "" : ", as was who held the same rows";
    const net::Rank last = placement.server(shard, replica - 1);
    return std::make_shared<const Error>(Code::peer_lost, transport.lost(last)->fact() + held + ": rows of all tables are lost");
  }
  for (net::Rank rank = 0; rank < transport.size(); ++rank) {
    if (left[rank] || transport.lost(rank)) continue;  // not lost[rank]: that is set later
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
    case Kind::called:
    case Kind::saved:
    case Kind::refused: {
      if (const std::uint64_t question = message.header.sequence; question != 0) {
        const auto answers = asked.find(question);
        if (answers == asked.end()) return question <= questions ? void() : refuse("nobody here asked about");  // another who was asked is lost
        answers->second->take(from, std::move(message));
        if (answers->second->complete()) asked.erase(answers);
        return;
      }
      const auto waiting_for = opening.find(id);
      if (waiting_for == opening.end()) return survives ? void() : refuse("nobody here opens");
      return waiting_for->second->take(from, std::move(message));
    }
    case Kind::leaving:
      left[from] = true;
      for (const auto& [table, reader] : read) reader->leaves(from);
      served.each([from](Server& server) { server.leaves(from); });
      return leaving.take(from, std::move(message));
    case Kind::last_clocks: return last_clocks->take(from, message);
    case Kind::keep: {
      const auto of_shard = saves.find(message.header.shard);
      return of_shard == saves.end() ? refuse("is not served here") : of_shard->second->keep(message);
    }
    default: break;
  }
  if (message.header.kind <= kLastToServer) {
    Server* const server = served.find(id, message.header.shard);
    return server ? server->take(from, std::move(message)) : refuse("is not served here");
  }
  const auto copy = read.find(id);
  return copy == read.end() ? refuse("nobody here has opened") : copy->second->take(from, std::move(message));
} catch (const Error& error) {
  transport.fail(error);
}

void Tables::State::open(net::Rank from, const Message& message) {
  const Spec spec = spec_from(message.text());
  const std::size_t number = message.header.shard;
  if (!placement.replica_of(number, transport.rank())) {
    throw Error(Code::mismatch, "rank " + std::to_string(from) + " opens a table that is not served here", "table " + spec.name);
  }
  Server* shard = served.find(message.header.table, number);
  if (!shard) {
    shard = &served.add(message.header.table, number, make_server(number, spec));
    for (const net::Rank gone : last_clocks->lost()) shard->lose(gone);
    last_clocks->open(message.header.table);
  }
  const std::string here = text_of(shard->spec());
  if (here == message.text()) shard->admit(from);
  mail->send(from, alone(here == message.text() ? Message::of_kind(Kind::opened, message.header.table)
                                                : Message::of_text(Kind::refused, message.header.table, here)));
}

std::unique_ptr<Server> Tables::State::make_server(std::size_t shard, const Spec& spec) {
  const auto answer = [this, shard](net::Rank to, std::vector<Message> messages) {
    for (Message& message : messages) message.header.shard = static_cast<std::uint16_t>(shard);
    mail->send(to, std::move(messages));
  };
  const auto idle = [this](net::Rank to) { return mail->unsent(to) == 0; };
  const auto take_cut = [this, shard](net::Rank by, const Message& request, const Spec& of, Clock clock, const Rule& rule,
                                      std::unique_ptr<Image> image) {
    saves.at(shard)->begin(by, request, of, clock, rule, std::move(image));
  };
  const auto off_loop = [this](std::function<void()> job, std::function<void()> then) {
    const auto go_on = [&on = transport, then = std::move(then)] {
      try {
        then();
      } catch (const Error& error) {
        on.fail(error);
      }
    };
    const auto run = [&on = transport, job = std::move(job), go_on] {
      job();
      on.post(go_on);
    };
    run_functions ? run_functions(run) : own_functions->run(run);
  };
  return make_shard(spec, workers, transport.size(), survives,
                    {answer, idle, take_cut, [this] { return transport.now(); }, off_loop, functions, cold});
}

void Tables::State::send(std::size_t shard, std::vector<Message> messages, bool one) {
  for (Message& message : messages) message.header.shard = static_cast<std::uint16_t>(shard);
  for (std::size_t replica = 0; replica < placement.replicas(); ++replica) {
    const net::Rank server = placement.server(shard, replica);
    if (lost[server]) continue;
    if (one || replica + 1 == placement.replicas()) return mail->send(server, std::move(messages));
    mail->send(server, messages);
  }
}

// Whoever waits for an answer of that member has one: that there will be none.
void Tables::State::lose(net::Rank member) {
  lost[member] = true;
  served.each([member](Server& server) { server.lose(member); });
  for (const auto& [table, reader] : read) reader->loses(member);
  last_clocks->lose(member, served.tables());
  for (const auto& [table, answers] : opening) answers->loses(member);
  for (const auto& [question, answers] : asked) answers->loses(member);
  std::erase_if(asked, [](const auto& question) { return question.second->complete(); });
  leaving.loses(member);
}

// Who answers for a shard; the last of its servers, if all are lost.
net::Rank Tables::State::first_of(std::size_t shard) const {
  std::size_t replica = 0;
  while (replica + 1 < placement.replicas() && lost[placement.server(shard, replica)]) ++replica;
  return placement.server(shard, replica);
}

// Those who are lost already answer nothing. On the loop.
void Tables::State::watch(Answers& answers) {
  for (net::Rank rank = 0; rank < transport.size(); ++rank) {
    if (lost[rank]) answers.loses(rank);
  }
}

std::shared_ptr<Answers> Tables::State::ask(std::vector<std::vector<Message>> messages) {
  const std::uint64_t number = ++questions;
  std::vector<std::size_t> owed(transport.size());
  std::vector<net::Rank> firsts;
  for (std::size_t shard = 0; shard < messages.size(); ++shard) {
    for (Message& message : messages[shard]) {
      message.header.sequence = number;
      message.header.shard = static_cast<std::uint16_t>(shard);
    }
    owed[firsts.emplace_back(first_of(shard))] += messages[shard].size();
  }
  const auto answers = std::make_shared<Answers>(std::move(owed));
  if (answers->complete()) return answers;
  transport.post([this, number, answers] {
    watch(*answers);
    if (!answers->complete()) asked.emplace(number, answers);
  });
  for (std::size_t shard = 0; shard < messages.size(); ++shard) {
    if (!messages[shard].empty()) mail->send(firsts[shard], std::move(messages[shard]));
  }
  return answers;
}

void Tables::State::tell(const Message& message) {
  for (std::size_t shard = 0; shard < placement.shards(); ++shard) send(shard, alone(message), true);
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
  if (survives) check_survives(spec);
  const auto to_servers = [this](std::size_t shard, std::vector<Message> messages) {
    const bool one = messages.front().header.kind == Kind::request;
    send(shard, std::move(messages), one);
  };
  auto copy = std::make_shared<Copy<T>>(spec, workers, transport.rank(), placement, to_servers, [this] { return transport.now(); });
  std::vector<std::size_t> owed(transport.size());
  for (std::size_t shard = 0; shard < placement.shards(); ++shard) {
    for (std::size_t replica = 0; replica < placement.replicas(); ++replica) ++owed[placement.server(shard, replica)];
  }
  const auto answers = std::make_shared<Answers>(std::move(owed));
  transport.post([this, id, copy, answers] {
    read.insert_or_assign(id, copy);
    opening.insert_or_assign(id, answers);
    watch(*answers);
  });
  for (std::size_t shard = 0; shard < placement.shards(); ++shard) {
    send(shard, alone(Message::of_text(Kind::open, id, text_of(spec))), false);
  }
  waiting.until([&] { return answers->complete(); }, *answers, "servers to open table ", spec.name);
  const bool refused = !answers->refused().empty() && !answers->lost();  // who is lost need not serve
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
      raw->served.each([to](Server& server) { server.drained(to); });
    };
    state->mail = std::make_unique<Mail>(state->transport, channel, "tables", deliver, drained);
    const OnDisk disk = state->disk ? state->disk : [raw = state.get()](std::function<void()> job) { raw->own_disk->run(std::move(job)); };
    const auto answer = [raw = state.get()](net::Rank to, Message message) { raw->mail->send(to, alone(std::move(message))); };
    const auto shards = static_cast<std::uint32_t>(state->placement.shards());
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      if (!state->placement.replica_of(shard, state->transport.rank())) continue;
      state->saves[shard] = std::make_shared<Saves>(state->transport, disk, shard, shards, answer);
    }
    state->last_clocks = std::make_unique<LastClocks>(state->workers, state->placement.servers(),
                                                       state->served.here(answer));
    state->transport.on_lost([weak = std::weak_ptr<State>(state)](net::Rank member, const net::Failure&) {
      const auto alive = weak.lock();
      if (alive && alive->mail) alive->lose(member);
    });
  });
  if (!begun) throw Error(Code::cancelled, "the transport has ended", "tables");
}

Tables::~Tables() {
  state_->say_goodbye();
  // Others may wait for what this member has said.
  const auto all_left = [&] {
    for (net::Rank rank = 0; rank < state_->transport.size(); ++rank) {
      if (!state_->transport.lost(rank) && state_->mail->unsent(rank) > 0) return false;
    }
    return true;
  };
  net::wait_for(state_->transport, [&] { return state_->transport.failure() || all_left(); }, net::kLoopAnswers);
  net::call(state_->transport, [state = state_] {
    state->mail.reset();
    for (const auto& [shard, saves] : state->saves) saves->end();
    state->served.clear();
    state->read.clear();
  });
  state_->own_disk.reset();
  state_->own_functions.reset();
  state_->functions->clear();
}

// What `shoal explain` tells of tables.
void Tables::State::note_telemetry() {
  const std::lock_guard lock(mutex);
  for (const auto& [id, known] : opened) {
    const std::string line = known.second->summary();
    const Instant now = steady_now();
    if (!line.empty()) Events::local().record({.kind = EventKind::note, .begin = now, .end = now, .name = Events::local().intern(line)});
  }
}

void Tables::State::say_goodbye() {
  if (std::exchange(said_goodbye, true)) return;
  note_telemetry();
  for (net::Rank rank = 0; rank < transport.size(); ++rank) {
    mail->send(rank, alone(Message::of_kind(Kind::leaving, 0)));
  }
}

void Tables::leave() {
  state_->say_goodbye();
  const Answers& leaving = state_->leaving;
  state_->waiting.until([&] { return leaving.complete(); }, leaving, "all members to leave their tables", "");
}

Functions& Tables::functions() { return *state_->functions; }

Worker Tables::worker(std::uint32_t index) {
  if (state_->workers.first_of(state_->transport.rank()) == state_->workers.size() || index >= state_->workers.a_member()) {
    throw Error(Code::invalid_argument, "rank " + std::to_string(state_->transport.rank()) + " has no worker " + std::to_string(index), "tables");
  }
  return {state_, index};
}

template <class T>
Table<T> Worker::open(Spec spec) {
  refuse_inside_function(spec.name);
  spec.type = kTypeOf<T>;
  return {spec, tables_->open<T>(spec), *this, index_, tables_};
}
template Table<float> Worker::open<float>(Spec);
template Table<double> Worker::open<double>(Spec);
template Table<std::int32_t> Worker::open<std::int32_t>(Spec);
template Table<std::int64_t> Worker::open<std::int64_t>(Spec);

}  // namespace shoal::table
