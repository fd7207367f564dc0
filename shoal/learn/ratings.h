// Ratings as the factorization learns from them: each member has all ratings of its users, and everybody knows how many there are. Ratings are
// triples (user, item, rating) of text, or a matrix in MatrixMarket's format.
// Every member reads all files, so that all agree without a word on numbers, names and who is held out. Values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "shoal/data/triple_store.h"
#include "shoal/learn/source.h"

namespace shoal::learn {

struct Ratings {
  std::uint32_t member = 0, members = 1;
  // This member's. Users count among them: user u of all is user u / members of member u % members.
  data::TripleStore own, own_held_out;
  std::uint32_t users = 0, items = 0;     // of all members, as the rest
  data::Names user_names, item_names;     // empty where the data has numbers for names
  std::uint64_t count = 0, held_out = 0;  // ratings
  std::uint64_t most = 0;                 // ratings to learn from that one member has
  double mean = 0;                        // of ratings to learn from
  float least = 0;                        // of all
  std::uint64_t digest = 0;               // of all numbers, in their order
  std::vector<data::Read> read;           // of the files, and of the test files if there are any

  std::uint32_t own_users() const { return users / members + (member < users % members ? 1 : 0); }
};

// Throws Error{invalid_argument} as the readers of data/ do, and where nothing is left to learn from.
Ratings read_ratings(const Source& source, std::uint32_t member = 0, std::uint32_t members = 1);

// The same of ratings that are in memory, all of them on all members; none is held out.
Ratings deal_ratings(data::Triples all, std::uint32_t member = 0, std::uint32_t members = 1);

// All ratings of files, numbered anew; for predictions.
std::pair<data::Triples, data::Read> read_all_ratings(const std::vector<std::filesystem::path>& files, bool skip_faulty = false);

}  // namespace shoal::learn
