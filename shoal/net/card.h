// What a member says of itself where members meet: who it is, what must be equal on all members, and the addresses at which
// it can be reached. Text on the board, one "key value" a line. Values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "shoal/net/handshake.h"
#include "shoal/net/job.h"

namespace shoal::net {

struct Card {
  MemberInfo info;
  Rank size = 0;
  std::string secret;  // fingerprint_of() the job's secret; empty without one
  bool shares = false; // memory with members of its host
  std::map<std::string, std::string> settings;
  std::vector<Endpoint> candidates;
};

// Tells equal secrets from different ones. Whoever reads it can try guesses: a secret must be random.
std::string fingerprint_of(const std::string& secret);

std::string write_card(const Card& card);
// Bounded, whatever the text: what it does not know or cannot read is left out.
Card read_card(const std::string& text);

// Throws Error{mismatch} or Error{invalid_argument} naming both members and the first thing that differs.
void check_equal(const Card& other, Rank rank, const Card& mine, Rank self);

}  // namespace shoal::net
