// What travels on a connection after its handshake: frames of a 40-byte header and a bounded payload.
// Pure functions; every size is checked before anything is allocated for it. Little endian on the wire.
//
//   0      4     5      6      8     12     16         24       32        40
//   length kind  class  flags  lane  packed operation  offset   consumed  payload ...
//
// `length` counts the stream's bytes. On a bulk connection they may come packed (core/packed_words.h), in as many as `packed` says; 0: as they are.
//
// Between members of one host a *lent* frame has in place of its payload where that lies in its sender's arena (arena.h), and a mark
// behind: who has read the mark has read the payload. One that was *given* is read for as long as the other side likes: it tells when it returns it, by
// numbers that both count in the order of these frames.
//
// `offset` is where the payload starts in its
// stream, counted by the sender; credit and requests speak in the same numbers. `consumed` rides on data, so that members
// which send to each other need no message of credit for what came unasked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/net/transport.h"

namespace shoal::net::wire {

inline constexpr std::size_t kHeaderBytes = 40;
inline constexpr std::size_t kMinFrame = 16 * 1024, kMaxFrame = 256 * 1024;  // payload on a bulk connection
inline constexpr std::size_t kMaxActivity = 200;  // bytes of "what it last did"
inline constexpr std::size_t kMaxReason = 1000;   // bytes of a failure's words

enum class Channel : std::uint8_t { control = 0, bulk = 1, memory = 2 };  // memory: of both, between members of one host
enum class Kind : std::uint8_t {
  data = 1,       // bytes of a stream                             control: urgent streams; bulk: the others
  request = 2,    // a sender without credit tells where it stands  bulk
  credit = 3,     // how far streams may go                         control
  heartbeat = 4,  //                                                control
  goodbye = 5,    // the member leaves in order                     control
  failure = 6,    // the member gives up, and why                   control
  mailbox = 7,    // where a member of this host passes its memory  control
  segment = 8,    // it was passed, under this number               control
  attached = 9,   // whether it could be mapped, an arena with it   control
  lost = 10,      // the job goes on without a member               control
  silent = 11,    // nothing comes from a member any more           control
  returned = 12,  // given frames that nobody reads any more        memory
  dry = 13,       // a sender with credit has nothing yet            bulk
};

struct Header {
  Kind kind = Kind::data;
  Class cls = Class::bulk;
  bool eager = false;        // sent before the receiver asked: counts against the eager budget
  bool lent = false;         // data through memory only
  bool given = false;        // it is lent, and stays where it is until it is returned
  bool follows = false;      // data on a bulk connection: it was ready when the frame before had left (Trains)
  bool dry = false;          // data: its sender has nothing more of the stream
  std::uint32_t length = 0;  // bytes of payload
  std::uint32_t packed = 0;  // of data: bytes that it takes here, fewer; 0: `length`
  Tag tag;
  std::uint64_t offset = 0;
  std::uint64_t consumed = 0;  // of data: as in Credit

  std::uint32_t wire_bytes() const { return packed > 0 ? packed : length; }  // of payload, here
};

inline constexpr std::size_t kPlaceBytes = 8, kMarkBytes = 8;  // of a lent frame; a mark is zeros
using HeaderBytes = std::array<std::byte, kHeaderBytes>;
HeaderBytes encode(const Header& header);
// nullopt: not a header that this channel may carry.
std::optional<Header> decode(std::span<const std::byte, kHeaderBytes> bytes, Channel channel);

struct Grant {
  Tag tag;
  std::uint64_t base = 0;   // what the receiver had received when it granted
  std::uint64_t limit = 0;  // the sender may send the bytes before this offset
};
struct Credit {
  std::uint64_t consumed = 0;  // eager bytes of this sender that found a receive (or were dropped), since the start
  std::vector<Grant> grants;
};
inline constexpr std::size_t kGrantsPerFrame = 128;
std::string encode(const Credit& credit);
std::optional<Credit> decode_credit(std::span<const std::byte> payload);

struct Returned {            // `count` given frames from that number on
  std::uint64_t first = 0, count = 0;
};
inline constexpr std::size_t kReturnedPerFrame = 128;
std::string encode(std::span<const Returned> returned);
std::optional<std::vector<Returned>> decode_returned(std::span<const std::byte> payload);

struct Heartbeat {
  std::int64_t sent_ns = 0;  // the sender's clock
  std::int64_t echo_ns = 0;  // the newest sent_ns it has from the receiver of this, 0: none
  std::int64_t held_ns = 0;  // how long it kept that before answering
  std::string activity;
};
std::string encode(const Heartbeat& heartbeat);
std::optional<Heartbeat> decode_heartbeat(std::span<const std::byte> payload);

struct Notice {              // of a failure, a loss or a silence
  std::uint32_t culprit = 0;  // rank that was lost or gave up, or is silent
  Code code = Code::peer_lost;
  std::string reason;        // the fact of the error
};
std::string encode(const Notice& notice);
std::optional<Notice> decode_notice(std::span<const std::byte> payload);
inline constexpr std::size_t kMaxMailbox = 100;   // bytes of a mailbox's name

}  // namespace shoal::net::wire
