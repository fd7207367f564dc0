// Programs as text: nothing is lost on the way there and back, and nothing that comes from outside is trusted.
#include <gtest/gtest.h>

#include <functional>

#include "shoal/collective/build.h"
#include "shoal/collective/synthesize.h"
#include "shoal/collective/verify.h"
#include "shoal/core/error.h"
#include "tests/collective/scripted_group.h"
#include "tests/refusal.h"

namespace shoal::collective {
namespace {

// Whatever a program says is said by its text: another text, another program.
TEST(ProgramJson, every_program_comes_back_as_it_was) {
  for (const Collective collective : kCollectives) {
    for (const std::string& name : builder_names(collective)) {
      for (const std::uint32_t ranks : {1U, 2U, 5U}) {
        const Program program = build(collective, name, ranks, ranks / 2 * (collective == Collective::reduce));
        const std::string text = to_json(program);
        const Program back = program_from_json(text);
        EXPECT_EQ(to_json(back), text);
        EXPECT_NO_THROW(verify(back)) << text;
      }
    }
  }
}

TEST(ProgramJson, the_text_is_as_documented) {
  EXPECT_EQ(to_json(ring_all_reduce(1)),
            R"({"v":1,"name":"ring","collective":"all_reduce","order":"rotated","ranks":1,"chunks":1,"lanes":[[[{"ops":[)"
            R"({"kind":"copy","chunk":0,"sources":["input"],"target":"output","completes":true}]}]]]})");
  EXPECT_EQ(to_json(chain_reduce(3, 1)),
            R"({"v":1,"name":"chain","collective":"reduce","order":"rotated","ranks":3,"chunks":1,"root":1,"slots":1,"lanes":[)"
            R"([[{"ops":[{"kind":"send","peer":1,"chunk":0,"sources":[0],"after":[[1,0,0]]}]}],)"
            R"([{"ops":[{"kind":"receive_reduce","peer":2,"chunk":0,"sources":["input"],"target":0}]}]],)"
            R"([[],[{"ops":[{"kind":"receive_reduce","peer":0,"chunk":0,"sources":["input"],"target":"output","completes":true}]}]],)"
            R"([[{"ops":[{"kind":"send","peer":0,"chunk":0,"sources":["input"]}]}],[]]]})");
}

TEST(ProgramJson, loops_stay_loops) {
  EXPECT_LT(to_json(ring_all_reduce(64)).size(), 64U * 1000);
  const Program back = program_from_json(to_json(ring_all_reduce(64)));
  EXPECT_EQ(back.lanes[5][0][1].times, 62U);
  EXPECT_EQ(back.lanes[5][0][1].ops[0].chunk_step, -1);
}

std::string refusal_of_program(const std::string& text) {
  return shoal::refusal([&] { program_from_json(text); });
}

// `from` of a good program replaced by `to`.
std::string with(const std::string& from, const std::string& to) {
  std::string text = to_json(ring_all_reduce(3));
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << text;
  return refusal_of_program(text.replace(at, from.size(), to));
}

TEST(ProgramJson, refusals_name_the_place) {
  EXPECT_EQ(refusal_of_program(""), "$: not JSON: byte 1 is out of place");
  EXPECT_EQ(refusal_of_program("{\"v\":"), "$: not JSON: byte 6 is out of place");
  EXPECT_EQ(refusal_of_program("[]"), "$: an object is expected");
  EXPECT_EQ(refusal_of_program("{}"), "$: no field \"v\"");
  EXPECT_EQ(with("\"v\":1", "\"v\":2"), "$.v: only version 1 is known");
  EXPECT_EQ(with("\"ring\"", "\"a\\nb\""), "$.name: 1 to 64 characters of a-z, 0-9, _ and - are expected");
  EXPECT_EQ(with("all_reduce", "allreduce"),
            "$.collective: \"allreduce\" is none of all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter, all_to_all");
  EXPECT_EQ(with("\"ranks\":3", "\"ranks\":5000"), "$.ranks: a whole number from 1 to 4096 is expected");
  EXPECT_EQ(with("\"ranks\":3", "\"ranks\":-3"), "$.ranks: a whole number from 1 to 4096 is expected");
  EXPECT_EQ(with("\"ranks\":3", "\"ranks\":3.0"), "$.ranks: a whole number from 1 to 4096 is expected");
  EXPECT_EQ(with("\"ranks\":3", "\"ranks\":18446744073709551615"), "$.ranks: a whole number from 1 to 4096 is expected");
  EXPECT_EQ(with("\"ranks\":3", "\"ranks\":4"), "$.lanes: 3 elements; one for each of 4 ranks is expected");
  EXPECT_EQ(with("\"ranks\":3", "\"ranks\":2"), "$.lanes: 3 elements; at most 2 are allowed");
  EXPECT_EQ(with("\"chunks\":3", "\"chunks\":0"), "$.chunks: a whole number from 1 to 16777216 is expected");
  EXPECT_EQ(with("\"kind\":\"send\"", "\"kind\":\"steal\""),
            "$.lanes[0][0][0].ops[0].kind: \"steal\" is none of send, receive, receive_reduce, fold, copy");
  EXPECT_EQ(with("\"sources\":[\"input\"]", "\"sources\":[\"inputs\"]"),
            "$.lanes[0][0][0].ops[0].sources[0]: \"inputs\" is none of input, output");
  EXPECT_EQ(with("\"after\":[[1,0,0]]", "\"after\":[[1,0]]"), "$.lanes[0][0][1].ops[0].after[0]: [lane, op, shift] is expected");
  EXPECT_EQ(with("\"peer\":1", "\"color\":1"), "$.lanes[0][0][0].ops[0]: unknown field \"color\"");
  EXPECT_EQ(with("\"lanes\":[[[", "\"lanes\":[[7,["), "$.lanes[0][0]: an array is expected");
}

// The size of slices that was tuned belongs to the program: it comes back, at its bounds too, and where none was tuned the text says none.
TEST(ProgramJson, a_tuned_size_of_slices_comes_back_and_one_out_of_bounds_is_refused) {
  Program made = ring_all_reduce(3);
  EXPECT_EQ(to_json(made).find("slice_bytes"), std::string::npos);
  for (const std::uint32_t bytes : {64U, 100'000U, 1U << 26}) {
    made.slice_bytes = bytes;
    const std::string text = to_json(made);
    const Program back = program_from_json(text);
    EXPECT_EQ(back.slice_bytes, bytes);
    EXPECT_EQ(to_json(back), text);
  }
  for (const char* wrong : {"63", "0", "67108865", "-64", "64.0", "\"64\"", "null"}) {
    EXPECT_EQ(with("\"lanes\"", "\"slice_bytes\":" + std::string(wrong) + ",\"lanes\""), "$.slice_bytes: a whole number from 64 to 67108864 is expected")
        << wrong;
  }
}

// A program for two hosts on a line of rate 4: {"topology":"...","rate":4.0,"bound":4.0,"prices":[0.125,0.125]}, give or take.
const topo::Topology& line() {
  static const topo::Topology made = [] {
    topo::Topology topology;
    topology.name = "line";
    topology.hosts = {"a", "b"};
    topology.link_both_ways(0, 1, 4);
    return topology;
  }();
  return made;
}

TEST(ProgramJson, refusals_of_certificates_and_shares_name_the_place) {
  Program made = synthesize(line(), Collective::all_reduce);
  made.shares = {7};
  made.certificate = Certificate{topo::digest(line()), 4, 4, {0.125, 0.25}};
  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string text = to_json(made);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << text;
    return refusal_of_program(text.replace(at, from.size(), to));
  };
  EXPECT_EQ(refusal_of_program(to_json(made)), "nothing was refused");
  EXPECT_EQ(broken("\"v\":1", "\"v\":\"1\""), "$.v: only version 1 is known");
  EXPECT_EQ(broken("\"v\":1,", ""), "$: no field \"v\"");
  EXPECT_EQ(broken("\"shares\":[7]", "\"shares\":[-7]"), "$.shares[0]: a whole number from 0 to 4294967295 is expected");
  EXPECT_EQ(broken("\"shares\":[7]", "\"shares\":[4294967296]"), "$.shares[0]: a whole number from 0 to 4294967295 is expected");
  EXPECT_EQ(broken("\"shares\":[7]", "\"shares\":[0.5]"), "$.shares[0]: a whole number from 0 to 4294967295 is expected");
  EXPECT_EQ(broken("\"shares\":[7]", "\"shares\":7"), "$.shares: an array is expected");
  EXPECT_EQ(broken("\"rate\":4.0", "\"rate\":-4.0"), "$.certificate.rate: a number, 0 or more, is expected");
  EXPECT_EQ(broken("\"rate\":4.0", "\"rate\":0"), "$.certificate.rate: a number above 0 is expected");
  EXPECT_EQ(broken("\"rate\":4.0", "\"rate\":null"), "$.certificate.rate: a number, 0 or more, is expected");   // what NaN is written as
  EXPECT_EQ(broken("\"rate\":4.0", "\"rate\":NaN").substr(0, 19), "$: not JSON: byte 1");
  EXPECT_EQ(broken("\"rate\":4.0", "\"rate\":1e999"), "$: a number is too big");
  EXPECT_EQ(broken("\"bound\":4.0", "\"bound\":\"4\""), "$.certificate.bound: a number, 0 or more, is expected");
  EXPECT_EQ(broken("\"bound\":4.0,", ""), "$.certificate: no field \"bound\"");
  EXPECT_EQ(broken("[0.125,0.25]", "[0.125,-0.25]"), "$.certificate.prices[1]: a number, 0 or more, is expected");
  EXPECT_EQ(broken("[0.125,0.25]", "{}"), "$.certificate.prices: an array is expected");
  EXPECT_EQ(broken("\"topology\":\"", "\"topology\":\"\u00e9"), "$.certificate.topology: 1 to 64 characters of a-z, 0-9, _ and - are expected");
  EXPECT_EQ(broken("\"certificate\":{", "\"certificate\":{\"proof\":1,"), "$.certificate: unknown field \"proof\"");
}

// What can be read and is not so: as many shares as chunks are for the verifier, what a certificate claims for who checks it.
TEST(ProgramJson, claims_that_are_not_so_are_refused) {
  const Program made = synthesize(line(), Collective::all_reduce);
  const auto refusal_of = [](const auto& check) -> std::string {
    try {
      check();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
    return "";
  };
  const auto claim = [&](const auto& change) {
    Program changed = made;
    change(changed);
    const Program back = program_from_json(to_json(changed));
    return refusal_of([&] { check_certificate(back, line()); });
  };
  EXPECT_EQ(claim([](Program&) {}), "");
  EXPECT_EQ(claim([](Program& p) { p.certificate.reset(); }), "program trees: it has no certificate: it was made for no topology");
  EXPECT_EQ(claim([](Program& p) { p.certificate->topology = "0123"; }), "program trees: its certificate is for another topology than line");
  EXPECT_EQ(claim([](Program& p) { p.certificate->prices = {1}; }), "program trees: its certificate has 1 prices for 2 arcs");
  EXPECT_EQ(claim([](Program& p) { p.certificate->bound = 3; }), "program trees: its prices prove a bound of 4, not of 3");
  EXPECT_EQ(claim([](Program& p) { p.certificate->rate = 5; }), "program trees: its ops come to a rate of 4, not of 5");
  EXPECT_EQ(claim([](Program& p) { p.certificate->prices = {0, 0}; }), "program trees: its prices prove no bound");
  Program shares = made;
  shares.shares.assign(shares.chunks + 1, 1);
  EXPECT_EQ(refusal_of([&] { verify(program_from_json(to_json(shares))); }).find("2 shares of 1 chunks") != std::string::npos, true);
}

TEST(ProgramJson, hostile_sizes_are_refused_without_being_built) {
  EXPECT_EQ(refusal_of_program(std::string(65U << 20, ' ')), "a program of 68157440 bytes; at most 67108864 are read");
  EXPECT_EQ(refusal_of_program(std::string(1U << 20, '[')).substr(0, 12), "$: not JSON:");
  std::string lanes = "[]";
  for (int i = 0; i < 70000; ++i) lanes += ",[]";
  EXPECT_EQ(refusal_of_program(R"({"v":1,"name":"a","collective":"all_gather","order":"none","ranks":1,"chunks":1,"lanes":[[)" + lanes + "]]}"),
            "$.lanes[0]: 70001 elements; at most 65536 are allowed");
  EXPECT_EQ(with("\"chunks\":3,\"lanes\":[", "\"chunks\":3,\"slots\":70000,\"lanes\":["), "$.slots: a whole number from 0 to 65536 is expected");
}

}  // namespace
}  // namespace shoal::collective
