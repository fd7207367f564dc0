// Goal: a factorization of a whole matrix is HALS, to rounding, on any number of members, and a function of data, options and members, to the bit.
// Oracle: HALS over the dense matrix in doubles, in one thread.
#include "shoal/learn/whole_factors.h"

#include <gmock/gmock.h>

#include <cmath>

#include "shoal/core/seed.h"
#include "tests/learn/members.h"

namespace shoal::learn {
namespace {

constexpr std::uint32_t kWholeUsers = 23, kWholeItems = 17, kWholeFactors = 5;

// A third of the numbers is given, some of them in two parts; user 7 and item 11 have none.
data::Triples counts() {
  data::Triples all;
  all.row_count = kWholeUsers;
  all.column_count = kWholeItems;
  for (std::uint32_t item = 0; item < kWholeItems; ++item) {
    for (std::uint32_t user = 0; user < kWholeUsers; ++user) {
      if (user == 7 || item == 11 || uniform(1, user, item, 0) > 1.0 / 3) continue;
      all.append(user, item, static_cast<float>(1 + user % 3 + 2 * (item % 2)));
      if (user % 4 == 0) all.append(user, item, 0.5f);
    }
  }
  return all;
}

FactorizationOptions for_counts(double l2 = 0.1) {
  FactorizationOptions options;
  options.factors = kWholeFactors;
  options.l2 = l2;
  options.non_negative = true;
  options.missing = Missing::zero;
  return options;
}

Begin whole_factorization(const FactorizationOptions& options, const data::Triples& all = counts()) {
  return [=](net::Transport& transport) { return factor_learner(transport, deal_ratings(all, transport.rank(), transport.size()), options); };
}

using Dense = std::vector<std::vector<double>>;  // rows

Dense dense(const data::Triples& all) {
  Dense matrix(all.row_count, std::vector<double>(all.column_count));
  for (std::size_t i = 0; i < all.size(); ++i) matrix[all.rows[i]][all.columns[i]] += all.values[i];
  return matrix;
}
Dense dense(const Tensor& tensor) {
  Dense matrix(tensor.shape[0]);
  for (std::size_t row = 0; row < matrix.size(); ++row) {
    const auto begin = tensor.values.begin() + static_cast<std::ptrdiff_t>(row * tensor.shape[1]);
    matrix[row].assign(begin, begin + static_cast<std::ptrdiff_t>(tensor.shape[1]));
  }
  return matrix;
}
Dense transposed(const Dense& matrix) {
  Dense other(matrix[0].size(), std::vector<double>(matrix.size()));
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    for (std::size_t j = 0; j < other.size(); ++j) other[j][i] = matrix[i][j];
  }
  return other;
}

double cell(const std::vector<double>& user, const std::vector<double>& item) {
  double sum = 0;
  for (std::size_t t = 0; t < user.size(); ++t) sum += user[t] * item[t];
  return sum;
}

// Each number of P in turn, column after column, to where the objective is least: w = sum over items of q_t (x - what the other factors say) / (|q_t|^2 + l2).
void sweep_by_hand(const Dense& X, Dense& P, const Dense& Q, double l2) {
  for (std::size_t t = 0; t < P[0].size(); ++t) {
    for (std::size_t user = 0; user < P.size(); ++user) {
      double along = 0, squares = l2;
      for (std::size_t item = 0; item < Q.size(); ++item) {
        along += Q[item][t] * (X[user][item] - cell(P[user], Q[item]) + P[user][t] * Q[item][t]);
        squares += Q[item][t] * Q[item][t];
      }
      if (squares > 0) P[user][t] = std::max(0.0, along / squares);
    }
  }
}

double squares_left(const Dense& X, const Dense& P, const Dense& Q) {
  double squares = 0;
  for (std::size_t user = 0; user < P.size(); ++user) {
    for (std::size_t item = 0; item < Q.size(); ++item) squares += std::pow(X[user][item] - cell(P[user], Q[item]), 2);
  }
  return squares;
}

void expect_near(const Tensor& ours, const Dense& theirs) {
  ASSERT_EQ(ours.shape, (std::vector<std::uint64_t>{theirs.size(), theirs[0].size()}));
  for (std::size_t i = 0; i < ours.values.size(); ++i) ASSERT_NEAR(ours.values[i], theirs[i / theirs[0].size()][i % theirs[0].size()], 1e-5) << i;
}

Tensors first_values_of_counts() {
  Tensors first{{"users", {{kWholeUsers, kWholeFactors}, {}}}, {"items", {{kWholeItems, kWholeFactors}, {}}}};
  for (auto& [name, tensor] : first) {
    for (std::uint64_t i = 0; i < tensor.shape[0] * kWholeFactors; ++i) tensor.values.push_back(static_cast<float>(uniform(2, i, 0, name == "users" ? 1 : 2)));
  }
  return first;
}

TEST(WholeFactorization, it_is_hals_by_hand_on_any_number_of_members) {
  for (const double l2 : {0.0, 0.3}) {
    const Dense X = dense(counts());
    const Tensors first = first_values_of_counts();
    Dense P = dense(first.at("users")), Q = dense(first.at("items"));
    for (unsigned epoch = 0; epoch < 6; ++epoch) {
      sweep_by_hand(X, P, Q, l2);
      sweep_by_hand(transposed(X), Q, P, l2);
    }
    for (const net::Rank members : {1u, 2u, 3u}) {
      SCOPED_TRACE(std::to_string(members) + " members, l2 " + std::to_string(l2));
      const Learnt learnt = learnt_by(members, 6, whole_factorization(for_counts(l2)), 0, first);
      expect_near(learnt.model.at("users"), P);
      expect_near(learnt.model.at("items"), Q);
      EXPECT_NEAR(learnt.figure("training RMSE"), std::sqrt(squares_left(X, P, Q) / kWholeUsers / kWholeItems), 1e-6);
    }
  }
}

TEST(WholeFactorization, the_objective_never_rises) {
  const double l2 = 0.2;
  const Dense X = dense(counts());
  double before = 1e9;
  for (unsigned epochs = 1; epochs <= 20; ++epochs) {
    const Tensors model = learnt_by(1, epochs, whole_factorization(for_counts(l2))).model;
    double objective = squares_left(X, dense(model.at("users")), dense(model.at("items"))) / 2;
    for (const auto& [name, tensor] : model) {
      for (const float value : tensor.values) objective += l2 / 2 * value * value;
    }
    EXPECT_LE(objective, before * (1 + 1e-7)) << epochs;  // factors are rounded to 32 bits
    before = objective;
  }
}

// Ones at half of the cells, as on a chessboard: without the zeros rank 1 fits all that is given, with them a half everywhere is the best.
TEST(WholeFactorization, what_is_not_given_counts) {
  data::Triples board;
  board.row_count = 8;
  board.column_count = 6;
  for (std::uint32_t user = 0; user < 8; ++user) {
    for (std::uint32_t item = 0; item < 6; ++item) {
      if ((user + item) % 2 == 0) board.append(user, item, 1);
    }
  }
  auto options = for_counts(0);
  options.factors = 2;
  const Learnt two = learnt_by(2, 60, whole_factorization(options, board));
  EXPECT_NEAR(two.figure("training RMSE"), 0, 1e-3) << "black and white are the factors";
  const Dense P = dense(two.model.at("users")), Q = dense(two.model.at("items"));
  EXPECT_NEAR(cell(P[0], Q[1]), 0, 1e-3);
  EXPECT_NEAR(cell(P[0], Q[2]), 1, 1e-3);
  options.factors = 1;
  EXPECT_NEAR(learnt_by(1, 60, whole_factorization(options, board)).figure("training RMSE"), 0.5, 1e-6);
}

TEST(WholeFactorization, two_runs_have_the_same_bits) {
  for (const net::Rank members : {1u, 3u}) {
    const Learnt one = learnt_by(members, 7, whole_factorization(for_counts())), other = learnt_by(members, 7, whole_factorization(for_counts()));
    expect_same_bits(one.model, other.model);
    EXPECT_EQ(one.figure("training RMSE"), other.figure("training RMSE"));
    for (const auto& [name, tensor] : one.model) EXPECT_THAT(tensor.values, testing::Each(testing::Ge(0))) << name;
  }
}

TEST(WholeFactorization, a_run_that_goes_on_has_the_bits_of_one_that_was_not_interrupted) {
  const auto begin = whole_factorization(for_counts());
  for (const net::Rank members : {1u, 3u}) {
    const Learnt half = learnt_by(members, 2, begin), rest = learnt_by(members, 5, begin, 2, half.model), whole = learnt_by(members, 5, begin);
    expect_same_bits(rest.model, whole.model);
    EXPECT_EQ(rest.figure("training RMSE"), whole.figure("training RMSE"));
  }
}

// First values below zero are none: they begin at it.
TEST(WholeFactorization, first_values_are_brought_to_zero) {
  const Tensors first = first_values_of_counts();
  Tensors below = first, at = first;
  for (auto* tensors : {&below, &at}) {
    for (auto& [name, tensor] : *tensors) tensor.values[3] = tensors == &below ? -2.0f : 0.0f;
  }
  expect_same_bits(learnt_by(2, 1, whole_factorization(for_counts()), 0, below).model, learnt_by(2, 1, whole_factorization(for_counts()), 0, at).model);
}

TEST(WholeFactorization, held_out_numbers_are_judged_by_the_model) {
  const auto dealt = [](net::Rank rank, net::Rank size) {
    Ratings ratings = deal_ratings(counts(), rank, size);
    for (std::uint32_t own = 0; own < ratings.own_users(); ++own) ratings.own_held_out.append(own, own % kWholeItems, 2.0f);
    ratings.held_out = kWholeUsers;
    return ratings;
  };
  const Learnt learnt = learnt_by(2, 4, [&](net::Transport& transport) { return factor_learner(transport, dealt(transport.rank(), transport.size()), for_counts()); });
  const Dense P = dense(learnt.model.at("users")), Q = dense(learnt.model.at("items"));
  double squares = 0;
  for (std::uint32_t user = 0; user < kWholeUsers; ++user) squares += std::pow(2 - cell(P[user], Q[user / 2 % kWholeItems]), 2);
  EXPECT_NEAR(learnt.figure("held-out RMSE"), std::sqrt(squares / kWholeUsers), 1e-6);
}

TEST(WholeFactorization, members_without_numbers_take_part) {
  data::Triples one;
  one.row_count = 1;  // member 0's
  one.column_count = 4;
  one.append(0, 2, 3);
  const Learnt learnt = learnt_by(3, 10, whole_factorization(for_counts(0), one));
  EXPECT_NEAR(learnt.figure("training RMSE"), 0, 1e-6);
}

TEST(WholeFactorization, what_cannot_be_is_refused_in_one_line) {
  const auto refusal = [](const FactorizationOptions& options, const data::Triples& all = counts()) -> std::string {
    auto jobs = net::join_all(1);
    try {
      factor_learner(jobs[0]->transport(), deal_ratings(all), options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal(for_counts()), "accepted");
  auto options = for_counts();
  options.non_negative = false;
  EXPECT_EQ(refusal(options), "missing: a whole matrix is learnt by non-negative factors alone (ask for these, too)");
  options = for_counts();
  options.biases = true;
  EXPECT_EQ(refusal(options), "biases: a whole matrix is learnt without them");
  options = for_counts();
  options.consistency = table::Ssp{3};
  EXPECT_EQ(refusal(options), "consistency: a whole matrix is learnt under bsp alone");
  options = for_counts();
  options.factors = 5000;
  EXPECT_EQ(refusal(options), "factors: 5000 are more than the 4096 of a whole matrix");
  options.factors = 0;
  EXPECT_EQ(refusal(options), "factors: 0 is not between 1 and 65536");
  auto below = counts();
  below.values[5] = -1;
  EXPECT_EQ(refusal(for_counts(), below), "non-negative: the data has a value below zero");
  EXPECT_EQ(missing_from("unknown"), Missing::unknown);
  try {
    missing_from("one");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "missing: \"one\" is none (unknown or zero)");
  }
}

}  // namespace
}  // namespace shoal::learn
