#include "shoal/nn/group/notes.h"

#include <cstring>
#include <utility>
#include <vector>

namespace shoal::nn {

struct Notes::State : std::enable_shared_from_this<State> {
  State(net::Transport& the_transport, std::uint64_t the_operation)
      : transport(the_transport), operation(the_operation), incoming(the_transport.size()) {}

  void receive(net::Rank from) {
    // The buffer lives in the shared state, which the handler keeps alive until the transport has let go of it.
    transport.receive(from, {operation, 0}, net::kUrgent, std::as_writable_bytes(std::span(&incoming[from], 1)),
                      [self = shared_from_this(), from](const net::Failure& failure) {
                        if (failure || self->closed) return;
                        self->take(from);
                        if (!self->closed) self->receive(from);
                      });
  }

  void take(net::Rank from) {
    const Note note = incoming[from];
    const auto kind = static_cast<std::uint32_t>(note.kind);
    if (kind >= kNoteKinds || !handlers[kind]) {
      transport.fail(Error(Code::mismatch, "a note of unknown kind " + std::to_string(kind) + " came from rank " +
                                               std::to_string(from), "process group", "do all members run the same Shoal?"));
      return;
    }
    handlers[kind](from, note);
  }

  void sent() {
    if (--unsent == 0 && when_sent) std::exchange(when_sent, nullptr)();
  }

  net::Transport& transport;
  const std::uint64_t operation;
  std::vector<Note> incoming;  // by rank: where its next note lands
  std::array<Handler, kNoteKinds> handlers;
  bool closed = false;
  std::size_t unsent = 0;
  std::function<void()> when_sent;
};

Notes::Notes(net::Transport& transport, std::uint64_t operation)
    : state_(std::make_shared<State>(transport, operation)) {}

Notes::~Notes() {
  state_->closed = true;
  state_->handlers = {};
  state_->when_sent = nullptr;
  state_->transport.close(state_->operation,
                          std::make_shared<const Error>(Code::cancelled, "the process group was closed"));
}

void Notes::on(NoteKind kind, Handler handler) { state_->handlers[static_cast<std::uint32_t>(kind)] = std::move(handler); }

void Notes::listen() {
  for (net::Rank from = 0; from < state_->transport.size(); ++from) {
    if (from != state_->transport.rank()) state_->receive(from);
  }
}

void Notes::send(net::Rank to, const Note& note) {
  auto copy = std::make_shared<const Note>(note);
  ++state_->unsent;
  state_->transport.send(to, {state_->operation, 0}, net::kUrgent, std::as_bytes(std::span(copy.get(), 1)),
                         [copy, state = state_](const net::Failure&) { state->sent(); });
}

void Notes::send_all(const Note& note) {
  for (net::Rank to = 0; to < state_->transport.size(); ++to) {
    if (to != state_->transport.rank()) send(to, note);
  }
}

void Notes::when_sent(std::function<void()> fn) {
  if (state_->unsent == 0) return fn();
  state_->when_sent = std::move(fn);
}

}  // namespace shoal::nn
