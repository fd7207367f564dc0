// Goal: a file that tomotopy wrote is read as tomotopy says it is, and whatever else has its name ends in one line.
//
// data/tomotopy.bin: tomotopy 0.14, LDAModel(k=3, seed=1, min_cf=2), four documents, ten sweeps, saved whole. What is wanted of it, tomotopy itself
// said of it, and lgamma() summed over that.
#include "shoal/learn/topic/tomotopy_file.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "shoal/learn/topic/peer_state.h"
#include "tests/data/files.h"

namespace shoal::learn::topic {
namespace {

using testing::ElementsAre;
using testing::DoubleNear;

class TomotopyFiles : public data::test::Files {
 protected:
  static std::string whole() {
    std::ifstream in(SHOAL_TOMOTOPY_FILE, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string refusal_of(const std::string& bytes) const {
    return refusal([&] { read_tomotopy_file(file("model.bin", bytes)); });
  }
  static std::string replaced(std::string bytes, std::string_view from, std::string_view to) {
    const std::size_t at = bytes.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return bytes.replace(at, to.size(), to);
  }
};

TEST_F(TomotopyFiles, is_read_as_tomotopy_has_it) {
  const TomotopyFile read = read_tomotopy_file(SHOAL_TOMOTOPY_FILE);
  std::vector<std::string> words;
  for (std::uint32_t word = 0; word < read.vocabulary.size(); ++word) words.emplace_back(read.vocabulary[word]);
  EXPECT_THAT(words, ElementsAre("delta", "charlie", "\xC3\xBC" "berall", "alpha", "bravo", "echo"));  // not "once", which came once
  EXPECT_THAT(read.prior.alpha, ElementsAre(DoubleNear(0.6512011, 1e-7), DoubleNear(0.32146618, 1e-7), DoubleNear(0.6538502, 1e-7)));
  EXPECT_FLOAT_EQ(read.prior.beta, 0.01f);
  EXPECT_THAT(read.documents.offsets, ElementsAre(0, 5, 10, 15, 20));
  EXPECT_THAT(read.documents[0], ElementsAre(0, 1, 3, 3, 4));
  EXPECT_THAT(std::vector(read.topics.begin(), read.topics.begin() + 5), ElementsAre(2, 0, 1, 1, 2));
}

TEST_F(TomotopyFiles, have_the_likelihood_that_their_topics_have) {
  const LogLikelihood sum = log_likelihood(read_state(SHOAL_TOMOTOPY_FILE, StateFormat::tomotopy));
  EXPECT_EQ(sum.tokens, 20u);
  EXPECT_NEAR(sum.total(), -56.55989660951488, 1e-9);
}

// As any state: by a file of words, and with flags in place of what the file says.
TEST_F(TomotopyFiles, take_words_and_priors_that_are_given) {
  const auto words = file("words.txt", "echo\nalpha\nbravo\ncharlie\ndelta\nunseen\n\xC3\xBC" "berall\n");
  const PeerState state = read_state(SHOAL_TOMOTOPY_FILE, StateFormat::tomotopy, {.words_file = words, .alpha_sum = 1.5, .beta = 0.5});
  EXPECT_THAT(state.documents[0], ElementsAre(4, 3, 1, 1, 2));
  EXPECT_EQ(state.model.words(), 7u);
  EXPECT_THAT(state.model.prior.alpha, ElementsAre(0.5, 0.5, 0.5));
  EXPECT_EQ(state.model.prior.beta, 0.5);
}

TEST_F(TomotopyFiles, that_cannot_be_scored_are_told) {
  const std::string bytes = whole();
  EXPECT_EQ(refusal_of("PLDA" + bytes.substr(4)), "model.bin: is no model of tomotopy's LDAModel");
  EXPECT_EQ(refusal_of(replaced(bytes, std::string_view("one\0", 4), std::string_view("idf\0", 4))),
            "model.bin: weighs tokens otherwise than by one (train with tw=tomotopy.TermWeight.ONE)");
  // Saved without documents, it ends with their number, 0, behind the topics of words.
  const std::size_t documents = bytes.find(std::string_view("\4\0\0\0TPTK", 8));
  EXPECT_EQ(refusal_of(bytes.substr(0, documents) + std::string(4, '\0')),
            "model.bin: has no documents (save it with them: model.save(path), not with full=False)");
  EXPECT_EQ(refusal_of(replaced(bytes, std::string_view("realV\0\6", 7), std::string_view("realV\0\0", 7))),
            "model.bin: has no topics of tokens yet (train it first)");
  EXPECT_EQ(refusal_of(replaced(bytes, std::string_view("Zs\0\5\0\0\0\2", 8), std::string_view("Zs\0\5\0\0\0\3", 8))),
            "model.bin: has topic 3, and there are 3");
  EXPECT_EQ(refusal_of(replaced(bytes, std::string_view("Zs\0\5\0\0\0\2", 8), std::string_view("Zs\0\5\0\0\0\1", 8))),
            "model.bin: counts other tokens than its documents have");
  EXPECT_EQ(refusal_of(replaced(bytes, "bravo", "alpha")), "model.bin: has a word twice");
  EXPECT_EQ(refusal([&] { read_tomotopy_file(folder_ / "none.bin"); }), "none.bin: cannot be read");
}

TEST_F(TomotopyFiles, that_are_cut_short_are_told_wherever_it_is) {
  const std::string bytes = whole();
  ASSERT_EQ(bytes.size(), 2476u);
  const auto cut = file("model.bin", bytes);
  for (std::size_t length = bytes.size(); length-- > 0;) {
    std::filesystem::resize_file(cut, length);
    ASSERT_EQ(refusal([&] { read_tomotopy_file(cut); }), "model.bin: is cut short, or not as tomotopy writes it (save it again, with tomotopy 0.6 or later)") << length << " bytes";
  }
  EXPECT_THAT(refusal_of(bytes + "x"), testing::StartsWith("model.bin: is cut short, or not as tomotopy writes it"));
}

// Whatever a byte is changed to, the file is refused in words, or says the same of as many tokens as are counted: nothing is read beyond its end, no
// memory asked for that it could not fill.
TEST_F(TomotopyFiles, with_a_wrong_byte_are_refused_or_whole) {
  const std::string bytes = whole();
  const auto damaged = file("model.bin", bytes);
  std::fstream one(damaged, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](std::size_t at, char byte) { one.seekp(static_cast<std::streamoff>(at)).put(byte).flush(); };
  std::size_t refused = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    constexpr unsigned flips[] = {0x01, 0x80, 0xFF};
    put(at, static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ flips[at % 3]));
    try {
      const TomotopyFile read = read_tomotopy_file(damaged);
      ASSERT_EQ(read.topics.size(), read.documents.tokens());
      ASSERT_EQ(read.prior.alpha.size(), 3u);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Code::invalid_argument) << at;
      ++refused;
    }
    put(at, bytes[at]);
  }
  EXPECT_GT(refused, bytes.size() / 3);
}

}  // namespace
}  // namespace shoal::learn::topic
