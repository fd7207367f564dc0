// Short notes between the members of a group: the c10d backend's own conversation beside the data. They ride the
// control connection past every bulk byte and keep their order between two members.
//
// Threads: the transport's loop only. Lifetime: the transport outlives the notes; destroy on the loop.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "shoal/net/transport.h"

namespace shoal::nn {

enum class NoteKind : std::uint32_t {
  message,  // point to point: a message is on its way         (tag; number: the sender's; value: bytes; detail[0]: do they wait)
  taken,    // the receiver has matched messages                 (value: how many)
  verdict,  // the receiver has matched one message              (tag: whether it takes it; number: which; value: bytes it expects)
  entered,  // this member waits in a collective                 (number: sequence; detail: what it believes it is)
  arrived,  // this member is at a monitored barrier               (number: which one)
  leave,    // rank 0 lets it go on                                (number: which one)
  differ,   // two members call different collectives             (number: sequence; value: their ranks; detail: what each calls)
};
inline constexpr std::uint32_t kNoteKinds = 7;

struct Note {
  NoteKind kind = NoteKind::message;
  std::uint32_t tag = 0;
  std::uint64_t number = 0, value = 0;
  std::array<std::uint64_t, 4> detail{};
};
static_assert(sizeof(Note) == 56);

class Notes {
 public:
  using Handler = std::function<void(net::Rank from, const Note& note)>;

  Notes(net::Transport& transport, std::uint64_t operation);
  ~Notes();                                   // closes the streams
  void on(NoteKind kind, Handler handler);    // before listen()
  void listen();                              // from now on notes arrive
  void send(net::Rank to, const Note& note);  // never blocks; lost only with the transport, or if the sender goes at once
  void send_all(const Note& note);            // to everybody else
  void when_sent(std::function<void()> fn);   // runs fn once all that was sent is with the kernel or lost: then one may go

 private:
  struct State;
  std::shared_ptr<State> state_;  // handlers of the transport share it: they may run after us
};

}  // namespace shoal::nn
