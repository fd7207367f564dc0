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
  message,  // point to point: a message is on its way         (tag; number: per pair; value: bytes)
  taken,    // the receiver has matched messages                 (value: how many)
  entered,  // this member waits in a collective                 (number: sequence; detail: what it believes it is)
  arrived,  // this member is at a monitored barrier               (number: which one)
  leave,    // rank 0 lets it go on                                (number: which one)
};
inline constexpr std::uint32_t kNoteKinds = 5;

struct Note {
  NoteKind kind = NoteKind::message;
  std::uint32_t tag = 0;
  std::uint64_t number = 0, value = 0;
  std::array<std::uint64_t, 3> detail{};
};
static_assert(sizeof(Note) == 48);

class Notes {
 public:
  using Handler = std::function<void(net::Rank from, const Note& note)>;

  Notes(net::Transport& transport, std::uint64_t operation);
  ~Notes();                                   // closes the streams
  void on(NoteKind kind, Handler handler);    // before listen()
  void listen();                              // from now on notes arrive
  void send(net::Rank to, const Note& note);  // never blocks; lost only with the transport

 private:
  struct State;
  std::shared_ptr<State> state_;  // handlers of the transport hold it weakly: they may run after us
};

}  // namespace shoal::nn
