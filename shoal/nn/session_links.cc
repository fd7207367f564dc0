// What a session knows of the links between its members: measured together, seen while training goes on, and what is left after losses.
#include "shoal/nn/session.h"

#include <string>
#include <utility>

#include "shoal/collective/probe.h"
#include "shoal/core/event.h"
#include "shoal/core/text.h"
#include "shoal/nn/group/find_network.h"

namespace shoal::nn {

constexpr unsigned kMostChangesTold = 200;  // of a run: each is a name among the events', and a link that comes and goes would use them up

// The network is that of all members, or of whom are left of them; in a group that lost some before it was known it stays unknown.
const collective::LinkModel& Session::link_model() {
  if (size() == 1 && !link_model_) link_model_.emplace();
  if (link_model_) {
    const auto& network = link_model_->network;
    if (network && network->ranks() != living() && !together_) link_model_->network = left_of(network_of_all_);  // a part's asks for itself alone
    return *link_model_;
  }
  together("the probe of the links", [this] {
    auto model = probe_those_left();
    const Said said = read_said(broadcast_text(place() == 0 ? said_here() : "", 0, "what is said of the network"));
    if (living() == size()) {
      const auto tell = [this](const std::string& words) { return broadcast_text(words, 0, "the network"); };
      model.network = find_network(job(), said, model, take_operations(find_network_operations(size())), patience_, tell);
    }
    model.tuning = said.tuning;
    measured(std::move(model));
    network_was_found_ = link_model_->network && !said.is_file();
  });
  network_of_all_ = link_model_->network;
  return *link_model_;
}

const collective::LinkModel& Session::measure_links_again() {
  if (size() == 1) return link_model();
  const auto before = link_model();  // what people want of the network stays
  std::shared_ptr<const collective::KnownNetwork> network;
  together("the probe of the links", [&] {
    auto model = probe_those_left();
    const bool whole = living() == size();
    network = network_of_all_;
    if (whole && network_was_found_) network = measure_again(job(), network_of_all_, model, take_operations(find_network_operations(size())), patience_);
    model.network = whole ? network : left_of(network_of_all_);
    model.tuning = before.tuning;
    measured(std::move(model));
  });
  network_of_all_ = network;
  return *link_model_;
}

const collective::LinkModel& Session::measured(collective::LinkModel model) {
  measured_ = link_model_ = std::move(model);
  return *link_model_;
}

void Session::look_at_links(std::int64_t step) {
  if (size() == 1) return;
  std::vector<net::LinkStats> totals(size());
  for (net::Rank peer = 0; peer < size(); ++peer) {
    if (peer != rank()) totals[peer] = job().transport().link(peer);
  }
  Events& events = Events::local();
  for (const auto& change : rates_.look(totals)) {
    if (!events.enabled() || changes_told_ == kMostChangesTold) continue;
    ++changes_told_;
    const Instant now = steady_now();
    const auto line = "the link " + std::string(change.goes_out ? "from" : "to") + " rank " + std::to_string(rank()) + " gives " + show_rate(change.now) + ", and gave " +
                      show_rate(change.was);
    events.record({EventKind::note, now, now, step, -1, 0, events.intern(line)});
  }
}

const collective::LinkModel& Session::follow_links() {
  if (!link_model_) return link_model();  // nothing was known when these rates began: what is measured now is what they are
  std::optional<collective::LinkModel> seen;
  if (size() > 1 && living() == size()) {
    const auto told = gather_text(collective::words(rates_.rates()), "what links give");
    // Whoever says the network means it: it is not followed, as it is not measured.
    auto known = *link_model_, as_measured = *measured_;
    if (!network_was_found_) known.network = as_measured.network = nullptr;
    if (told.size() == size()) seen = collective::as_seen(known, as_measured, collective::heard_rates(told));
  }
  if (!seen) return measure_links_again();
  if (!network_was_found_) seen->network = link_model_->network;
  link_model_ = std::move(seen);
  network_of_all_ = link_model_->network;
  return *link_model_;
}

collective::LinkModel Session::probe_those_left() {
  if (living() == 1) return {};
  return collective::probe(transport(), members(), take_operations(collective::kProbeOperations), transport().now() + patience_);
}

std::shared_ptr<const collective::KnownNetwork> Session::left_of(const std::shared_ptr<const collective::KnownNetwork>& whole) {
  if (!whole || living() == whole->ranks()) return whole;
  std::shared_ptr<const collective::KnownNetwork> left;
  together("the network of those that are left", [&] {
    const auto words = place() == 0 ? whole->words_around(members()) : "";
    left = collective::KnownNetwork::heard(broadcast_text(words, 0, "the network of those that are left"));
  });
  return left;
}

}  // namespace shoal::nn
