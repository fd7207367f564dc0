// Goal: steps go down the gradient, planted factors are found again, and under bsp a model is a function of its data, options and members.
#include "shoal/learn/factorization.h"

#include <gmock/gmock.h>

#include <cmath>

#include "shoal/core/seed.h"
#include "shoal/learn/order.h"
#include "tests/learn/members.h"

namespace shoal::learn {
namespace {

// Oracle: the loss of one rating in doubles, differentiated by central differences.
TEST(Factorization, a_step_is_down_the_gradient) {
  for (const bool biases : {false, true}) {
    FactorizationOptions options;
    options.factors = 11;
    options.biases = biases;
    options.l2 = 0.3;
    std::vector<float> user(options.width()), item(options.width());
    fill_normal(user, 1, 1, 0, 0);
    fill_normal(item, 1, 1, 0, 1);
    const double rating = 1.7;
    const auto loss = [&](std::vector<double> both) {
      const double *p = both.data(), *q = p + options.width();
      double error = rating, norm = 0;
      for (std::size_t k = 0; k < options.factors; ++k) error -= p[k] * q[k];
      if (biases) error -= p[options.factors] + q[options.factors];
      for (const double value : both) norm += value * value;
      return error * error / 2 + options.l2 * norm / 2;
    };
    std::vector<double> at(user.begin(), user.end());
    at.insert(at.end(), item.begin(), item.end());
    const float step = 1e-2f;
    auto stepped_user = user, stepped_item = item;
    const float error = descend(stepped_user, stepped_item, static_cast<float>(rating), step, options);
    EXPECT_NEAR(error, rating - product(user, item, options), 1e-6);
    auto stepped = stepped_user;
    stepped.insert(stepped.end(), stepped_item.begin(), stepped_item.end());
    for (std::size_t k = 0; k < at.size(); ++k) {
      auto above = at, below = at;
      above[k] += 1e-5;
      below[k] -= 1e-5;
      EXPECT_NEAR((at[k] - stepped[k]) / step, (loss(above) - loss(below)) / 2e-5, 1e-3) << k;
    }
  }
}

// A matrix of rank 3 of which two thirds are known.
Ratings planted(std::uint32_t member, std::uint32_t members, bool positive = false) {
  constexpr std::uint32_t users = 60, items = 50, rank = 3;
  Ratings ratings;
  ratings.member = member;
  ratings.members = members;
  ratings.users = users;
  ratings.items = items;
  const auto factor = [&](std::uint32_t row, std::uint32_t k, std::uint32_t site) {
    return positive ? 2 * uniform(5, row, k, site) : 2 * uniform(5, row, k, site) - 1;
  };
  std::vector<std::uint64_t> dealt(members);
  double sum = 0;
  ratings.least = 1e9f;
  for (std::uint32_t user = 0; user < users; ++user) {
    for (std::uint32_t item = 0; item < items; ++item) {
      double value = 0;
      for (std::uint32_t k = 0; k < rank; ++k) value += factor(user, k, 1) * factor(item, k, 2);
      const bool held = (user * items + item) % 3 == 0;
      ratings.least = std::min(ratings.least, static_cast<float>(value));
      if (user % members == member) (held ? ratings.own_held_out : ratings.own).append(user / members, item, static_cast<float>(value));
      if (held) {
        ++ratings.held_out;
      } else {
        ++ratings.count;
        ++dealt[user % members];
        sum += value;
      }
    }
  }
  ratings.most = *std::max_element(dealt.begin(), dealt.end());
  ratings.mean = sum / static_cast<double>(ratings.count);
  return ratings;
}

FactorizationOptions for_planted() {
  FactorizationOptions options;
  options.factors = 4;  // one for the mean that is taken off
  options.step = {0.1, false};
  options.l2 = 0;
  options.batch = 100;
  return options;
}

Begin factorization(const FactorizationOptions& options, bool positive = false) {
  return [=](net::Transport& transport) { return std::make_unique<Factorization>(transport, planted(transport.rank(), transport.size(), positive), options); };
}

// The values' deviation is about 0.58: what is left after 80 epochs is under a tenth of it; under a quarter where nothing bounds how far members are apart: one
// may then have ended before another begins.
TEST(Factorization, planted_factors_are_found_by_any_number_of_members_at_any_consistency) {
  for (const net::Rank members : {1u, 2u, 5u}) {
    for (const table::Consistency& consistency : {table::Consistency(table::Bsp{}), table::Consistency(table::Ssp{2}), table::Consistency(table::Essp{2}), table::Consistency(table::Async{})}) {
      SCOPED_TRACE(std::to_string(members) + " members, " + table::name(consistency));
      auto options = for_planted();
      options.consistency = consistency;
      const Learnt learnt = learnt_by(members, 80, factorization(options));
      const double most = std::holds_alternative<table::Async>(consistency) ? 0.145 : 0.058;
      EXPECT_LT(learnt.figure("held-out RMSE"), most);
      EXPECT_LT(learnt.figure("training RMSE"), most);
    }
  }
}

TEST(Factorization, biases_are_learnt_and_belong_to_the_model) {
  auto options = for_planted();
  options.biases = true;
  const Learnt learnt = learnt_by(2, 60, factorization(options));
  EXPECT_LT(learnt.figure("held-out RMSE"), 0.05);
  EXPECT_EQ(learnt.model.at("users").shape, (std::vector<std::uint64_t>{60, 5}));
}

TEST(Factorization, non_negative_factors_are_never_below_zero) {
  auto options = for_planted();
  options.non_negative = true;
  for (const net::Rank members : {1u, 3u}) {
    const Learnt learnt = learnt_by(members, 60, factorization(options, true));
    EXPECT_LT(learnt.figure("held-out RMSE"), 0.1);  // the values' deviation is 1.0
    for (const char* name : {"users", "items"}) {
      for (const float value : learnt.model.at(name).values) ASSERT_GE(value, 0) << name;
    }
  }
}

TEST(Factorization, the_model_says_what_the_figures_say) {
  const auto options = for_planted();
  const Learnt learnt = learnt_by(3, 5, factorization(options));
  const Ratings all = planted(0, 1);
  const auto row = [&](const char* name, std::uint32_t number) { return std::span(learnt.model.at(name).values).subspan(number * 4, 4); };
  double squares = 0;
  const data::TripleSlice held_out = all.own_held_out.all();
  for (std::size_t i = 0; i < held_out.size(); ++i) {
    const double error = held_out.values[i] - all.mean - product(row("users", held_out.rows[i]), row("items", held_out.columns[i]), options);
    squares += error * error;
  }
  EXPECT_NEAR(learnt.figure("held-out RMSE"), std::sqrt(squares / static_cast<double>(all.held_out)), 1e-6);
}

TEST(Factorization, under_bsp_two_runs_have_the_same_bits) {
  for (const net::Rank members : {1u, 3u}) {
    const Learnt one = learnt_by(members, 4, factorization(for_planted())), other = learnt_by(members, 4, factorization(for_planted()));
    expect_same_bits(one.model, other.model);
    EXPECT_EQ(one.figure("held-out RMSE"), other.figure("held-out RMSE"));
  }
}

TEST(Factorization, a_run_that_goes_on_has_the_bits_of_one_that_was_not_interrupted) {
  for (const bool non_negative : {false, true}) {
    auto options = for_planted();
    options.non_negative = non_negative;
    const auto begin = factorization(options, non_negative);
    for (const net::Rank members : {1u, 3u}) {
      const Learnt half = learnt_by(members, 2, begin), rest = learnt_by(members, 5, begin, 2, half.model), whole = learnt_by(members, 5, begin);
      expect_same_bits(rest.model, whole.model);
      EXPECT_EQ(rest.figure("held-out RMSE"), whole.figure("held-out RMSE"));
    }
  }
}

// With a step too small to move anything the model is what it began with.
TEST(Factorization, it_begins_with_given_values) {
  auto options = for_planted();
  options.step = {1e-30, false};
  const Tensors other = learnt_by(1, 3, factorization(for_planted())).model;
  for (const net::Rank members : {1u, 3u}) {
    const Learnt learnt = learnt_by(members, 1, factorization(options), 0, other);
    expect_same_bits(learnt.model, other);
  }
}

TEST(Factorization, members_without_ratings_take_part) {
  const Learnt learnt = learnt_by(2, 3, [](net::Transport& transport) {
    Ratings ratings = planted(0, 1);
    ratings.member = transport.rank();
    ratings.members = 2;
    ratings.users = 1;  // member 0's
    ratings.own = {};
    for (std::uint32_t item = 0; item < ratings.items && transport.rank() == 0; ++item) ratings.own.append(0, item, 1.0f);
    ratings.own_held_out = {};
    ratings.most = ratings.items;
    return std::make_unique<Factorization>(transport, ratings, for_planted());
  });
  EXPECT_EQ(learnt.epochs.back().figures.size(), 1u) << "nothing is held out";
}

TEST(Factorization, what_cannot_be_is_refused_in_one_line) {
  const auto refusal = [](const FactorizationOptions& options, unsigned epochs = 0) -> std::string {
    auto jobs = net::join_all(1);
    try {
      Factorization learner(jobs[0]->transport(), planted(0, 1), options);
      for (unsigned epoch = 0; epoch < epochs; ++epoch) learner.learn([](double) {});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
    return "accepted";
  };
  FactorizationOptions options = for_planted();
  options.factors = 0;
  EXPECT_EQ(refusal(options), "factors: 0 is not between 1 and 65536");
  options = for_planted();
  options.non_negative = true;
  EXPECT_EQ(refusal(options), "non-negative: the data has a value below zero");
  options = for_planted();
  options.step.sigma = 100;
  EXPECT_EQ(refusal(options, 3), "step: numbers grew without bound in epoch 1 (take a smaller one, or with several members a smaller batch)");
}

}  // namespace
}  // namespace shoal::learn
