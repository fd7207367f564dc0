#include "shoal/table/state.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "shoal/core/error.h"
#include "shoal/net/call.h"
#include "shoal/net/job.h"
#include "shoal/table/ordered_server.h"

namespace shoal::table {
namespace {

std::vector<net::Rank> or_all(std::vector<net::Rank> ranks, net::Rank size) {
  if (!ranks.empty()) return ranks;
  ranks.resize(size);
  std::iota(ranks.begin(), ranks.end(), net::Rank{0});
  return ranks;
}

std::uint32_t checked_parts(const TablesOptions& options, net::Rank size) {
  const std::size_t most = most_parts(options.servers.empty() ? size : options.servers.size());
  if (options.parts >= 1 && options.parts <= most) return options.parts;
  throw Error(Code::invalid_argument, std::to_string(options.parts) + " parts of each server's rows", "tables", "1 to " + std::to_string(most));
}

}  // namespace

Tables::State::State(net::Transport& of_transport, const TablesOptions& options)
    : transport(of_transport), survives(net::goes_on(of_transport.on_peer_lost())),
      regroups(net::replaces_lost(of_transport.on_peer_lost())),
      may_serve(or_all(options.servers, of_transport.size())),
      placement(may_serve, survives ? 2 : 1, options.shares, checked_parts(options, of_transport.size())),
      workers(options.workers_of_each.empty() ? Workers(or_all(options.workers, of_transport.size()), options.workers_a_member)
                                              : Workers(or_all(options.workers, of_transport.size()), options.workers_of_each)),
      waiting(of_transport, options.patience, [this] { return failure(); }), disk(options.disk), run_functions(options.functions),
      cold(options.cold_rows.empty() ? nullptr : ColdFile::in(options.cold_rows)),
      bodies(std::make_shared<BytesPool>([&of_transport](std::size_t size) { return of_transport.lendable(size); })), order(options.order),
      channel(options.channel),
      most_under_way(std::max<std::size_t>(1, options.most_under_way / std::max<std::size_t>(1, workers.ranks().size()) / options.parts)),
      most_copies(options.most_copies), left(of_transport.size()), lost(of_transport.size()),
      leaving(std::vector<std::size_t>(of_transport.size(), 1)),
      meeting(!regroups) {
  if (order && survives) {
    const std::string policy = net::name(of_transport.on_peer_lost());
    throw Error(Code::unsupported, "a run is recorded or a replay where the first lost member ends it; not with --on-peer-lost " + policy, order.folder.string());
  }
}

net::Failure Tables::State::failure() const {
  {
    const std::lock_guard lock(end_mutex);
    if (end) return end;
  }
  for (net::Rank rank = 0; rank < transport.size(); ++rank) {
    if (left[rank] || transport.lost(rank)) continue;  // not lost[rank]: that is set later
    if (net::Failure why = mail->failure(rank)) return why;
  }
  return nullptr;
}

void Tables::State::note_departure() {
  if (!departs || !holdings->holds_nothing()) return;
  departure.over = true;
  departure.look();
}

void Tables::State::note_lost_rows() {
  const auto last = holdings->lost();
  if (!last) return;
  const std::string held = placement.replicas() == 1 ? "" : ", as was who held the same rows";
  const std::lock_guard lock(end_mutex);
  end = std::make_shared<const Error>(Code::peer_lost, transport.lost(*last)->fact() + held + ": rows of all tables are lost");
}

void Tables::State::deliver(net::Rank from, Message message) try {
  if (stopped) return;
  if (message.header.kind == Kind::kept) return hear_kept(from, message);
  if (!meeting.over) return void(meeting.early.emplace_back(from, std::move(message)));
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
      holdings->leaves(from);
      served.each([from](Server& server) { server.leaves(from); });
      return leaving.take(from, std::move(message));
    case Kind::last_clocks: return last_clocks->take(from, message);
    case Kind::keep: {
      const auto of_shard = saves.find(message.header.shard);
      return of_shard == saves.end() ? refuse("is not served here") : of_shard->second->keep(message);
    }
    case Kind::last:
    case Kind::invite:
    case Kind::joins:
    case Kind::holds:
    case Kind::lacks:
    case Kind::goes:
    case Kind::parts:
    case Kind::move:
      holdings->take(from, message);
      if (message.header.kind == Kind::last) last_clocks->falls_silent(from);
      note_departure();
      return note_lost_rows();
    default: break;
  }
  if (message.header.kind <= kLastToServer) return serve(from, std::move(message));
  const auto copy = read.find(id);
  return copy == read.end() ? refuse("nobody here has opened") : copy->second->take(from, std::move(message));
} catch (const Error& error) {
  transport.fail(error);
}

void Tables::State::serve(net::Rank from, Message message) {
  const Header header = message.header;
  if (header.kind == Kind::more) holdings->wanted(message);
  if (header.kind == Kind::follow && holdings->follows(from, message)) return note_departure();
  Server* const server = served.find(header.table, header.shard);
  if (server) {
    if (is_given(header.kind)) moved_of(header.table)->taken += sizeof(Header) + message.body.size();
    server->take(from, std::move(message));
    if (is_given(header.kind)) holdings->received(header.table, header.shard);
    holdings->part();
    note_departure();
  } else if (!survives) {  // else it was to be served here, and has been given up
    throw Error(Code::mismatch, "rank " + std::to_string(from) + " speaks of a table that is not served here", "tables", "run the same program on all members");
  }
}

void Tables::State::open(net::Rank from, const Message& message) {
  const Spec spec = spec_from(message.text());
  const std::size_t number = message.header.shard;
  if (number >= placement.shards()) {
    throw Error(Code::mismatch, "rank " + std::to_string(from) + " opens a table that is not served here", "table " + spec.name);
  }
  Server* shard = served.find(message.header.table, number);
  const bool is_first = !shard;
  if (is_first && !std::ranges::count(placement.first_holders(number), rank())) return;  // it was to be served here, and has been given up
  if (is_first) {
    shard = &served.add(message.header.table, number, make_server(number, spec));
    for (const net::Rank gone : last_clocks->lost()) shard->lose(gone);
    last_clocks->open(message.header.table);
  }
  const std::string here = text_of(shard->spec());
  if (here == message.text()) shard->take(from, message);
  mail->send(from, alone(here == message.text() ? Message::of_kind(Kind::opened, message.header.table)
                                                : Message::of_text(Kind::refused, message.header.table, here)));
  if (is_first) holdings->mend();
}

std::unique_ptr<Server> Tables::State::make_server(std::size_t shard, const Spec& spec) {
  const auto answer = [this, shard, moved = moved_of(id_of(spec))](net::Rank to, std::vector<Message> messages) {
    for (Message& message : messages) {
      message.header.shard = static_cast<std::uint16_t>(shard);
      if (is_given(message.header.kind)) moved->given += sizeof(Header) + message.body.size();
    }
    mail->send(to, std::move(messages));
  };
  const auto idle = [this](net::Rank to) { return mail->unsent(to) == 0; };
  const auto take_cut = [this, shard](net::Rank by, const Message& request, const Spec& of, Clock clock, const Rule& rule,
                                      std::unique_ptr<Image> image) {
    saves.at(shard)->begin(by, request, of, clock, rule, std::move(image), moved_of(id_of(of)));
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
  const auto make = [&](const Surroundings& around) { return make_shard(spec, workers, transport.size(), survives, around); };
  const Surroundings around{answer, idle, take_cut, [this] { return transport.now(); }, off_loop, functions, cold, bodies};
  if (!order) {
    std::unique_ptr<Server> server = make(around);
    for (net::Rank rank = 0; rank < transport.size(); ++rank) {
      if (left[rank]) server->leaves(rank);
    }
    return server;
  }
  return std::make_unique<OrderedServer>(order_of(spec, "shard-" + std::to_string(shard)), transport.size(), around, make);
}

std::unique_ptr<Order> Tables::State::order_of(const Spec& spec, const std::string& what) const {
  const std::string rank = "rank-" + std::to_string(transport.rank());
  std::string whose = "Shoal's order 1: " + rank + " of " + std::to_string(transport.size()) + ", " + what + " of";
  for (std::size_t shard = 0; shard < placement.shards(); ++shard) whose += " " + std::to_string(placement.buckets_of(shard));
  whose += ", worker " + std::to_string(workers.first_of(transport.rank())) + " of " + std::to_string(workers.size()) + ", " + text_of(spec);
  std::ranges::replace(whose, '\n', ' ');
  return std::make_unique<Order>(order, std::to_string(channel) + "-" + std::to_string(id_of(spec)) + "-" + rank + "-" + what + ".order", whose);
}

LastClocks::Here Tables::State::clocks_here(std::function<void(net::Rank to, Message message)> send) {
  const bool serves = std::ranges::count(may_serve, rank()) > 0;
  LastClocks::Here here;
  here.completed = [this, serves](std::uint64_t table, std::uint32_t worker) {
    return served.completed(table, worker).value_or(serves && !holdings->knows(table) ? 0 : kLastClock);
  };
  here.met = [this, serves](std::uint64_t table) { return served.met(table).value_or(serves && !holdings->knows(table) ? 0 : ~std::uint64_t{0}); };
  here.reached = [this](std::uint64_t table) {
    const auto reader = read.find(table);
    return std::max(served.reached(table), reader == read.end() ? 0 : reader->second->reached());
  };
  here.cut = [this](std::uint64_t table, const Last& last) {
    served.cut(table, last);
    if (const auto reader = read.find(table); reader != read.end()) reader->second->all_know();
    transport.post([weak = weak_from_this()] {       // not before all know that this is agreed
      const auto alive = weak.lock();
      if (alive && alive->mail) alive->holdings->mend();
    });
  };
  here.send = std::move(send);
  return here;
}

// Whoever waits for an answer of that member has one: that there will be none.
void Tables::State::lose(net::Rank member) {
  lost[member] = true;
  served.each([member](Server& server) { server.lose(member); });
  for (const auto& [table, reader] : read) reader->loses(member);
  holdings->loses(member);
  note_lost_rows();
  std::vector<std::uint64_t> tables = served.tables();
  for (const auto& [table, reader] : read) {
    if (!std::ranges::count(tables, table)) tables.push_back(table);
  }
  last_clocks->lose(member, tables);
  for (const auto& [table, answers] : opening) answers->loses(member);
  for (const auto& [question, answers] : asked) answers->loses(member);
  std::erase_if(asked, [](const auto& question) { return question.second->complete(); });
  leaving.loses(member);
  holdings->mend();
  note_departure();
}

std::shared_ptr<ServerBytes> Tables::State::moved_of(std::uint64_t table) {
  std::shared_ptr<ServerBytes>& of_table = moved[table];
  if (!of_table) of_table = std::make_shared<ServerBytes>();
  return of_table;
}

// Those who are lost already answer nothing. On the loop.
void Tables::State::watch(Answers& answers) {
  for (net::Rank rank = 0; rank < transport.size(); ++rank) {
    if (lost[rank]) answers.loses(rank);
  }
}

std::shared_ptr<Answers> Tables::State::ask(const Reader& table, std::vector<std::vector<Message>> messages) {
  const std::uint64_t number = ++questions;
  std::shared_ptr<Answers> answers;
  table.with_firsts([&](const std::vector<net::Rank>& firsts) {
    std::vector<std::size_t> owed(transport.size());
    for (std::size_t shard = 0; shard < messages.size(); ++shard) {
      for (Message& message : messages[shard]) {
        message.header.sequence = number;
        message.header.shard = static_cast<std::uint16_t>(shard);
      }
      owed[firsts[shard]] += messages[shard].size();
    }
    answers = std::make_shared<Answers>(std::move(owed));
    if (answers->complete()) return;
    transport.post([this, number, answers] {
      watch(*answers);
      if (!answers->complete()) asked.emplace(number, answers);
    });
    for (std::size_t shard = 0; shard < messages.size(); ++shard) {
      if (!messages[shard].empty()) mail->send(firsts[shard], std::move(messages[shard]));
    }
  });
  return answers;
}

void Tables::State::tell(const Reader& table, const Message& message) {
  table.with_firsts([&](const std::vector<net::Rank>& firsts) {
    for (std::size_t shard = 0; shard < firsts.size(); ++shard) {
      Message to_one = message;
      to_one.header.shard = static_cast<std::uint16_t>(shard);
      mail->send(firsts[shard], alone(std::move(to_one)));
    }
  });
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
  check_bears_losses(spec);
  waiting.until([&] { return meeting.over.load(); }, meeting, "all members to meet, for table ", spec.name);
  const auto opening_it = std::make_shared<Opening<T>>();
  if (order) opening_it->order = order_of(spec, "copies");
  if (!net::call(transport, [this, opening_it, spec] { open(*opening_it, spec); })) throw Error(Code::cancelled, "the transport has ended", "tables");
  const auto& copy = opening_it->copy;
  const auto& answers = opening_it->answers;
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

// Who holds the table's shards and what is said to them change together.
template <class T>
void Tables::State::open(Opening<T>& opening_it, const Spec& spec) {
  const std::uint64_t id = id_of(spec);
  const std::vector<Holders>& holders = holdings->of(id);
  const auto to_server = [this](net::Rank server, std::vector<Message> messages) { mail->send(server, std::move(messages)); };
  const auto copy = opening_it.copy =
      std::make_shared<Copy<T>>(spec, workers, transport.rank(), placement, holders,
                                typename Copy<T>::Surroundings{to_server, [this] { return transport.now(); }, most_under_way, most_copies, moved_of(id), bodies});
  if (const auto start = starts.find(id); start != starts.end()) copy->begin_at(start->second);
  if (opening_it.order) {
    copy->keep_order(std::move(opening_it.order), [this, weak = std::weak_ptr(copy)] {
      transport.post([&on = transport, weak] {
        try {
          if (const auto alive = weak.lock()) alive->go_on();
        } catch (const Error& error) {
          on.fail(error);
        }
      });
    });
  }
  std::vector<std::size_t> owed(transport.size());
  for (const Holders& of_shard : holders) {
    for (const net::Rank rank : of_shard.whole()) ++owed[rank];
  }
  opening_it.answers = std::make_shared<Answers>(std::move(owed));
  read.insert_or_assign(id, opening_it.copy);
  opening.insert_or_assign(id, opening_it.answers);
  note_lost_rows();
  for (std::size_t shard = 0; shard < holders.size(); ++shard) {
    Message message = Message::of_text(Kind::open, id, text_of(spec));
    message.header.shard = static_cast<std::uint16_t>(shard);
    for (const net::Rank rank : holders[shard].all()) mail->send(rank, alone(message));
  }
}

template std::shared_ptr<Copy<float>> Tables::State::open<float>(const Spec&);
template std::shared_ptr<Copy<double>> Tables::State::open<double>(const Spec&);
template std::shared_ptr<Copy<std::int32_t>> Tables::State::open<std::int32_t>(const Spec&);
template std::shared_ptr<Copy<std::int64_t>> Tables::State::open<std::int64_t>(const Spec&);

}  // namespace shoal::table
