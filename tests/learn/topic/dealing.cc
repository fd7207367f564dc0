// Members that are not alike: documents are dealt by threads and memory, and the model is as exact, and as much the same each time, as among equals.
#include "shoal/learn/topic/dealing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>

#include "shoal/core/error.h"
#include "shoal/learn/topic/checkpoint.h"
#include "shoal/learn/topic/lda.h"
#include "shoal/learn/topic/memory.h"
#include "shoal/learn/topic/speed.h"
#include "tests/learn/topic/three_subjects.h"
#include "tests/net/members.h"

namespace shoal::learn::topic {
namespace {

using Turns = std::vector<std::uint32_t>;

TEST(Dealing, MembersThatAreAlikeHaveOneTurnEach) {
  EXPECT_EQ(turns_of(std::vector<Brought>{{1, 0, kNoLimit}}, 100), Turns{});
  EXPECT_EQ(turns_of(std::vector<Brought>{{4, 0, kNoLimit}, {4, 0, kNoLimit}, {4, 0, kNoLimit}}, 100), Turns{});
}

TEST(Dealing, TurnsAreAsThreadsAreAndSpread) {
  EXPECT_EQ(turns_of(std::vector<Brought>{{2, 0, kNoLimit}, {4, 0, kNoLimit}}, 100), (Turns{1, 0, 1}));
  EXPECT_EQ(turns_of(std::vector<Brought>{{3, 0, kNoLimit}, {1, 0, kNoLimit}, {2, 0, kNoLimit}}, 100),
            (Turns{0, 2, 0, 1, 2, 0}));
}

// Goal: nobody is dealt more than it has room for while others have room. Relation: turns are parts of 1024, rounded down for who is full.
TEST(Dealing, WhoHasLittleRoomHasAsMuchAsItHasRoomFor) {
  const auto counted = [](const std::vector<Brought>& members, std::uint64_t tokens) {
    const Turns turns = turns_of(members, tokens);
    std::vector<std::ptrdiff_t> of;
    for (std::uint32_t m = 0; m < members.size(); ++m) of.push_back(std::ranges::count(turns, m));
    return of;
  };
  using Counts = std::vector<std::ptrdiff_t>;
  EXPECT_EQ(counted({{1, 1, 125}, {1, 0, kNoLimit}}, 1000), (Counts{1, 7}));
  EXPECT_EQ(counted({{1, 1, 100}, {2, 0, kNoLimit}, {1, 0, kNoLimit}}, 1000), (Counts{51, 307, 154}));
  // Who is full leaves more to others, for which that may be too much in turn.
  EXPECT_EQ(counted({{1, 1, 125}, {1, 1, 280}, {2, 0, kNoLimit}}, 1000), (Counts{64, 143, 305}));
  // A thread that is half as quick counts as half a thread.
  EXPECT_EQ(turns_of(std::vector<Brought>{{2, 0, kNoLimit, 4}, {1, 0, kNoLimit, 8}}, 1000), Turns{});
  EXPECT_EQ(counted({{1, 0, kNoLimit, 8}, {1, 0, kNoLimit, 3}}, 1000), (Counts{8, 3}));
  EXPECT_EQ(counted({{1, 1, 125, 8}, {1, 0, kNoLimit, 8}, {1, 0, kNoLimit, 4}}, 1000), (Counts{128, 597, 299}));
  // Room enough: by threads. Too little in all: by threads, too, and on disk.
  EXPECT_EQ(counted({{1, 1, 500}, {3, 1, 900}}, 1000), (Counts{1, 3}));
  EXPECT_EQ(counted({{1, 1, 100}, {3, 1, 200}}, 1000), (Counts{1, 3}));
  EXPECT_EQ(counted({{1, 1, 0}, {3, 0, kNoLimit}}, 1000), (Counts{0, 1}));
}

TEST(Dealing, EachSampleIsOfOneMemberAndTurnsAreInProportion) {
  const Turns turns{1, 0, 1};
  std::array<unsigned, 2> of{};
  for (std::uint64_t sample = 0; sample < 900; ++sample) {
    const std::uint32_t owner = data::Share{0, 2, turns}.owner(sample);
    ++of[owner];
    EXPECT_EQ((data::Share{0, 2, turns}.holds(sample)), owner == 0);
    EXPECT_EQ((data::Share{1, 2, turns}.holds(sample)), owner == 1);
    EXPECT_EQ((data::Share{0, 3}.owner(sample)), (data::Share{0, 3, {0, 1, 2}}.owner(sample)));
  }
  EXPECT_EQ(of[0], 300u);
}

struct Made {
  Model model;
  std::vector<Kept> kept;
  std::vector<data::Share> shares;
  std::vector<std::uint32_t> blocks;
};

struct How {
  std::vector<std::uint32_t> threads;  // of each member
  std::vector<std::uint64_t> memory = {};  // of each; none: no limits
  SamplerKind sampler = SamplerKind::exact;
  Parallel parallel = Parallel::rotation;
  Start start = Start::random;
  unsigned sweeps = 3;
  std::vector<Speed> speeds = {};  // of each; none: by processors, which are one
  std::filesystem::path from = {}, to = {};  // folders of checkpoints
};

// As shoal topics train does it: what each brings, documents dealt by it, sweeps.
Made made(const How& how) {
  const auto documents = three_subjects();
  const auto members = static_cast<net::Rank>(how.threads.size());
  Made made{.model = {},
            .kept = std::vector<Kept>(members),
            .shares = std::vector<data::Share>(members),
            .blocks = std::vector<std::uint32_t>(members)};
  auto jobs = net::join_all(members);
  net::each(members, [&](net::Rank rank) {
    net::Transport& transport = jobs[rank]->transport();
    LdaOptions options{.prior = flat(7),
                       .seed = 4,
                       .threads = how.threads[rank],
                       .start = how.start,
                       .sampling = {how.sampler},
                       .parallel = how.parallel,
                       .memory = how.memory.empty() ? 0 : how.memory[rank],
                       .blocks_in = testing::TempDir()};
    Gather gather(transport, 40);
    const MemberPart part{.topics = 7,
                          .members = members,
                          .threads = options.threads,
                          .sampling = options.sampling,
                          .first = rank == 0,
                          .parallel = how.parallel};
    text::Corpus corpus = share_of(documents, {rank, members});
    const Speed said = how.speeds.empty() ? Speed{} : how.speeds[rank];
    const std::uint32_t speed = agreed_speeds(transport, gather, corpus, options, kTrialChannel, said)[rank];
    options.dealing = agreed(gather, brought(options.memory, corpus, part, speed), corpus.all_tokens);
    const data::Share share = options.dealing.share(rank, members);
    corpus = share_of(documents, share);
    // It outlives all that reads what others said in it.
    std::optional<Checkpoints> checkpoints;
    if (!how.from.empty() || !how.to.empty()) checkpoints.emplace(transport, how.from.empty() ? how.to : how.from);
    std::optional<Kept> from;
    if (!how.from.empty()) from = checkpoints->newest(corpus, 7, share);
    Lda lda(transport, corpus, options, from ? &*from : nullptr);
    while (lda.sweeps() < how.sweeps) lda.sweep();
    if (!how.to.empty()) checkpoints->write(lda.keep(), corpus.documents, lda.share());
    Model model = lda.model();
    made.kept[rank] = lda.keep();
    made.shares[rank] = share;
    made.blocks[rank] = lda.blocks();
    if (rank == 0) made.model = std::move(model);
  });
  net::leave_all(jobs);
  return made;
}

void expect_exact(const Made& made) {
  const auto documents = three_subjects();
  std::vector<std::vector<std::uint32_t>> counts(kLdaWords, std::vector<std::uint32_t>(7));
  for (std::size_t rank = 0; rank < made.kept.size(); ++rank) {
    const text::Corpus corpus = share_of(documents, made.shares[rank]);
    ASSERT_EQ(corpus.documents.tokens(), made.kept[rank].of_tokens().size());
    for (std::size_t i = 0; i < corpus.documents.tokens(); ++i)
      ++counts[corpus.documents.words()[i]][made.kept[rank].of_tokens()[i]];
  }
  ASSERT_EQ(made.model.words(), kLdaWords);
  for (std::uint32_t word = 0; word < kLdaWords; ++word) {
    std::vector<std::uint32_t> row(7);
    for (const auto& [topic, count] : made.model[word]) row[topic] = count;
    EXPECT_EQ(row, counts[word]) << "word " << word;
  }
}

void expect_same_bits(const Made& one, const Made& other) {
  EXPECT_EQ(one.model.counts, other.model.counts);
  for (std::size_t rank = 0; rank < one.kept.size(); ++rank)
    EXPECT_TRUE(std::ranges::equal(one.kept[rank].of_tokens(), other.kept[rank].of_tokens())) << "rank " << rank;
}

TEST(Unequal, CountsAreExactAndBitsTheSameEachTime) {
  for (const SamplerKind sampler :
       {SamplerKind::exact, SamplerKind::lightlda, SamplerKind::warplda, SamplerKind::xy, SamplerKind::gibbs}) {
    for (const std::vector<std::uint32_t>& threads : {std::vector<std::uint32_t>{3, 1}, {1, 2, 1}, {1, 2, 3}}) {
      for (const Parallel parallel : {Parallel::rotation, Parallel::data}) {
        SCOPED_TRACE("sampler " + std::to_string(static_cast<int>(sampler)) + ", " + std::to_string(threads[0]) + ", " +
                     std::to_string(threads[1]) + " threads, " + (parallel == Parallel::data ? "data" : "rotation"));
        const How how{.threads = threads, .sampler = sampler, .parallel = parallel};
        const Made once = made(how);
        expect_exact(once);
        expect_same_bits(once, made(how));
      }
    }
  }
  expect_exact(made({.threads = {2, 1}, .start = Start::online}));
}

TEST(Unequal, DocumentsAreAsThreadsAre) {
  const Made result = made({.threads = {3, 1}, .sweeps = 1});
  const auto documents = [&](net::Rank rank) { return share_of(three_subjects(), result.shares[rank]).documents.size(); };
  EXPECT_EQ(documents(0), 180u);
  EXPECT_EQ(documents(1), 60u);
}

TEST(Unequal, DocumentsAreAsThreadsAreQuick) {
  const How how{.threads = {1, 2}, .speeds = {{Speed::By::number, 3.0}, {Speed::By::number, 0.75}}};
  const Made result = made(how);
  const auto documents = [&](net::Rank rank) { return share_of(three_subjects(), result.shares[rank]).documents.size(); };
  EXPECT_EQ(documents(0), 160u);
  EXPECT_EQ(documents(1), 80u);
  expect_exact(result);
  expect_same_bits(result, made(how));
}

TEST(Speed, IsSaidInAnyUnitAndRounded) {
  EXPECT_EQ(in_parts(std::vector<double>{3.1e9, 3.1e9}), (std::vector<std::uint32_t>{8, 8}));
  EXPECT_EQ(in_parts(std::vector<double>{1, 0.5, 0.01, 0}), (std::vector<std::uint32_t>{8, 4, 1, 8}));
  EXPECT_EQ(speed_of("auto").by, Speed::By::processor);
  EXPECT_EQ(speed_of("measured").by, Speed::By::trial);
  EXPECT_EQ(speed_of("2.5").number, 2.5);
  for (const char* const word : {"", "0", "-1", "inf", "nan", "2x", "quick"}) EXPECT_THROW(speed_of(word), Error) << word;
}

// What each of two members finds, the second of which draws by a sampler that passes over all topics for each token.
std::vector<std::vector<std::uint32_t>> found(const std::vector<Speed>& said, const std::vector<std::string>& processors) {
  std::vector<std::vector<std::uint32_t>> found(2), documents;
  for (int copy = 0; copy < 10; ++copy) std::ranges::copy(three_subjects(), std::back_inserter(documents));
  auto jobs = net::join_all(2);
  net::each(2, [&](net::Rank rank) {
    net::Transport& transport = jobs[rank]->transport();
    const LdaOptions options{.prior = flat(2000), .sampling = {rank == 0 ? SamplerKind::exact : SamplerKind::gibbs}};
    Gather gather(transport, 40);
    const text::Corpus corpus = share_of(documents, {rank, 2});
    found[rank] = agreed_speeds(transport, gather, corpus, options, kTrialChannel, said[rank], processors[rank]);
  });
  net::leave_all(jobs);
  return found;
}

TEST(Speed, IsMeasuredWhereProcessorsDifferOrItIsAskedFor) {
  using Found = std::vector<std::vector<std::uint32_t>>;
  EXPECT_EQ(found({{}, {}}, {"this", "this"}), (Found{{8, 8}, {8, 8}}));
  for (const Speed& said : {Speed{}, Speed{Speed::By::trial}}) {
    const Found measured = found({said, said}, {"this", said.by == Speed::By::trial ? "this" : "another"});
    EXPECT_EQ(measured[0], measured[1]);
    EXPECT_EQ(measured[0][0], 8u);
    EXPECT_LT(measured[0][1], 8u);
  }
}

// Who was told before a member was lost, and who was not, find it anew together; where all were told, nothing is measured again.
TEST(Speed, IsKeptWhereAllHaveFoundIt) {
  using Found = std::vector<std::vector<std::uint32_t>>;
  Speed one{Speed::By::number, 4}, other{Speed::By::number, 1};
  one.found = 3;
  EXPECT_EQ(found({one, other}, {"this", "this"}), (Found{{8, 2}, {8, 2}}));
  other.found = 5;
  EXPECT_EQ(found({one, other}, {"this", "this"}), (Found{{3, 5}, {3, 5}}));
}

TEST(Speed, IsSaidByAllOrByNone) {
  auto jobs = net::join_all(2);
  net::each(2, [&](net::Rank rank) {
    Gather gather(jobs[rank]->transport(), 40);
    const Speed said = rank == 0 ? Speed{Speed::By::number, 1} : Speed{};
    try {
      agreed_speeds(jobs[rank]->transport(), gather, share_of(three_subjects(), {rank, 2}), {.prior = flat(7)}, kTrialChannel, said);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::mismatch);
    }
  });
  net::leave_all(jobs);
}

// One member may take so little that it needs blocks; then all have as many, also the one that has no limit.
TEST(Unequal, AMemberWithALimitAndOneWithout) {
  const MemberPart part{.topics = 7, .members = 2, .threads = 1, .first = false};
  const std::uint64_t others = [&] {
    const Footprint all = footprint(share_of(three_subjects(), {1, 2}), part, 1);
    return all.total() - all.documents;
  }();
  const How how{.threads = {1, 1}, .memory = {0, others + 20'000}};
  const Made result = made(how);
  expect_exact(result);
  const auto tokens = [&](net::Rank rank) { return result.kept[rank].of_tokens().size(); };
  EXPECT_LT(2 * tokens(1), tokens(0));  // what it has no room for, the other one has
  EXPECT_GT(tokens(1), 0u);
  EXPECT_EQ(result.blocks, (std::vector<std::uint32_t>{1, 1}));
  expect_same_bits(result, made(how));
}

TEST(Unequal, GoesOnToTheSameBitsAndAmongOthersExactly) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("shoal-unequal-" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  for (const Parallel parallel : {Parallel::rotation, Parallel::data}) {
    SCOPED_TRACE(parallel == Parallel::data ? "data" : "rotation");
    const auto gone_on = [&](const std::vector<std::uint32_t>& threads, unsigned sweeps) {
      return made({.threads = threads, .parallel = parallel, .sweeps = sweeps, .from = folder});
    };
    made({.threads = {3, 1}, .parallel = parallel, .sweeps = 2, .to = folder});
    // keep() lays everything anew where it goes on, too: so both went on from there.
    const Made once = gone_on({3, 1}, 4);
    expect_exact(once);
    expect_same_bits(once, gone_on({3, 1}, 4));
    expect_exact(gone_on({1, 3}, 3));  // as many members, but documents are dealt anew
    expect_exact(gone_on({1, 1}, 3));
    expect_exact(gone_on({2, 1, 1}, 3));
    std::filesystem::remove_all(folder);
  }
}

}  // namespace
}  // namespace shoal::learn::topic
