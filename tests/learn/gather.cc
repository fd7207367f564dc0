// Bytes of all members come to one, or to all, in the order of ranks, call after call.
#include "shoal/learn/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/net/members.h"

namespace shoal::learn {
namespace {

Bytes bytes_of(const std::string& text) {
  Bytes bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}
std::vector<std::string> texts_of(const std::vector<Bytes>& all) {
  std::vector<std::string> texts;
  for (const Bytes& bytes : all) texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return texts;
}

TEST(Gather, BytesComeToOneOrToAll) {
  for (const net::Rank members : {1u, 2u, 4u}) {
    auto jobs = net::join_all(members);
    net::each(members, [&](net::Rank rank) {
      Gather gather(jobs[rank]->transport(), 30);
      for (int call = 0; call < 3; ++call) {
        const auto text = [&](net::Rank of) { return of == 1 ? std::string() : std::string(1000 * of + 1, static_cast<char>('a' + call)); };
        std::vector<std::string> all;
        for (net::Rank of = 0; of < members; ++of) all.push_back(text(of));
        EXPECT_EQ(texts_of(gather(bytes_of(text(rank)), "texts")), rank == 0 ? all : std::vector<std::string>());
        EXPECT_EQ(texts_of(gather.on_all(bytes_of(text(rank)), "texts")), all);
      }
    });
    net::leave_all(jobs);
  }
}

}  // namespace
}  // namespace shoal::learn
