// Sums of int32 among members of whom some may be lost, as tests of losses make them: by the program of one name, made anew for as many as are left.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "shoal/collective/hosts.h"
#include "shoal/collective/joint.h"
#include "shoal/collective/select.h"

namespace shoal::collective {

// What members add by: a builder of build.h, or a network's program on a network that has it; "": the cheapest on any link.
struct Summing {
  std::string builder;
  net::Rank members = 0;  // at first: ranks 0 to members - 1

  // A slow member for trees, two members a host for "hierarchical"; none for builders.
  LinkModel link() const {
    LinkModel link;
    topo::Topology topology;
    if (builder == kTrees) {
      topology.name = "the last one is slow";
      topology.switches = {"s"};
      for (topo::Node host = 0; host < members; ++host) topology.hosts.push_back("h" + std::to_string(host));
      for (topo::Node host = 0; host < members; ++host)
        topology.link_both_ways(host, members, host + 1 == members ? 25e6 : 125e6);
      link.network = KnownNetwork::made_for(topology);
    }
    if (builder == kHierarchical) {
      Hosts hosts(members);
      for (net::Rank rank = 0; rank < members; ++rank) hosts[rank] = rank / 2;
      link.network = KnownNetwork::without_trees(network_of(hosts, 1e9, 25e6));
    }
    return link;
  }
};

// What those that are left of them add by, as nn::Session::left_of() has it. Each is made once.
class Programs {
 public:
  static Programs& around(const Summing& summing, const std::vector<net::Rank>& left) {
    static std::map<std::tuple<std::string, net::Rank, std::vector<net::Rank>>, Programs> made;
    return made.try_emplace({summing.builder, summing.members, left}, summing, left).first->second;
  }
  Programs(const Summing& summing, const std::vector<net::Rank>& left)
      : builder_(summing.builder), ranks_(static_cast<std::uint32_t>(left.size())), link_(summing.link()) {
    if (link_.network && ranks_ < summing.members) link_.network = link_.network->around(left);
    if (is_of_network(builder_) && !(link_.network && link_.network->made(Collective::all_reduce, builder_))) builder_.clear();
  }
  const LinkModel& link() const { return link_; }
  const Verified& for_bytes(double bytes) {
    const std::string name = builder_.empty() ? choose(Collective::all_reduce, ranks_, bytes, link_) : builder_;
    if (const auto known = programs_.find(name); known != programs_.end()) return known->second;
    return programs_.emplace(name, program_named(Collective::all_reduce, name, ranks_, 0, link_.network.get())).first->second;
  }

 private:
  std::string builder_;  // "": the cheapest, also where what is left of the network does not have it
  const std::uint32_t ranks_;
  LinkModel link_;
  std::map<std::string, Verified> programs_;
};

// The sum of `count` numbers of those that are left, in an attempt of theirs.
struct Sum {
  Sum(const Summing& summing, const Attempt& attempt, std::size_t count, const std::string& label) {
    const Runner& runner = *attempt.runner;
    const double bytes = static_cast<double>(count) * sizeof(std::int32_t);
    Programs& programs = Programs::around(summing, runner.members());
    program = &programs.for_bytes(bytes);
    layout = Layout::even(program->program(), runner.rank(), count);
    run.type = DType::i32;
    run.slice_bytes = slice_bytes(Collective::all_reduce, program->program().name, runner.size(), bytes, programs.link());
    if (bytes <= net::kUrgentLimit) run.priority.cls = net::Class::urgent;
    run.operation = attempt.operation;
    run.label = label;
  }
  const Verified* program;  // of Programs, which stay
  Layout layout;
  Run run;
};

inline Buffers buffers(const std::vector<std::int32_t>& input, std::vector<std::int32_t>& output) {
  return {reinterpret_cast<const std::byte*>(input.data()), reinterpret_cast<std::byte*>(output.data())};
}

// The sum as one part of a program that all do together, which is how training has its own done. output may be the input: the sum is made aside, since a
// part writes nothing that it reads. Who contributed.
inline std::vector<net::Rank> sum_together(net::Transport& transport, Survivors& survivors, const Summing& summing,
                                           const std::vector<std::int32_t>& input, std::vector<std::int32_t>& output,
                                           Nanoseconds patience, const std::string& label) {
  std::vector<std::int32_t> aside(&input == &output ? input.size() : 0);
  std::vector<std::int32_t>& sums = &input == &output ? aside : output;
  auto contributors = do_together(transport, survivors, patience, label, [&](const Attempt& attempt) {
    const Sum sum(summing, attempt, input.size(), label);
    attempt.runner->run(*sum.program, sum.layout, buffers(input, sums), sum.run, transport.now() + patience);
  });
  if (&input == &output) output = std::move(aside);
  return contributors;
}

}  // namespace shoal::collective
