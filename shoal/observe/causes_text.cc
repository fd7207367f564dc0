// An explanation in words: for a terminal, for one line, for machines.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "shoal/core/text.h"
#include "shoal/observe/causes.h"

namespace shoal::observe {

const char* name(CauseKind kind) {
  switch (kind) {
    case CauseKind::link: return "link";
    case CauseKind::slow_link: return "slow_link";
    case CauseKind::latency: return "latency";
    case CauseKind::slower: return "slower";
    case CauseKind::communication: return "communication";
    case CauseKind::slow_member: return "slow_member";
    case CauseKind::turns: return "turns";
    case CauseKind::loading: return "loading";
    case CauseKind::pauses: return "pauses";
    case CauseKind::optimizer: return "optimizer";
    case CauseKind::recording: return "recording";
    case CauseKind::first_steps: return "first_steps";
    case CauseKind::start_up: return "start_up";
    case CauseKind::rest: return "rest";
  }
  return "unknown";
}

std::string headline(const Explanation& why) {
  if (why.seconds <= 0) return "no step was recorded: steps are those of a model in shoal.data_parallel()";
  const double computing = 100 * why.share(why.computing);
  if (why.causes.empty()) return fmt::format("{:.1f} % of the time is computing, nothing else took any", computing);
  const Cause& largest = why.causes.front();
  const double share = why.share(largest.seconds);
  if (share < kWorthMending) {
    return fmt::format("nothing costs much: {:.1f} % of the time is computing, the largest rest {:.1f} % ({})", computing, 100 * share,
                       largest.title);
  }
  return fmt::format("{:.1f} % of the time: {}; {}", 100 * share, largest.title, largest.remedy);
}

std::string to_text(const Explanation& why, const std::string& run) {
  if (why.seconds <= 0) {
    std::string text = fmt::format("{}: {}\n", run, headline(why));
    for (const std::string& remark : why.remarks) text += fmt::format("to know: {}\n", remark);
    return text;
  }
  std::string text = fmt::format("{}: {} member{}, {} steps in {}\n", run, why.members, why.members == 1 ? "" : "s", why.steps,
                                 show_seconds(why.seconds));
  if (!why.causes.empty() && why.share(why.causes.front().seconds) < kWorthMending) text += headline(why) + "\n";
  text += "\n";
  int number = 0;
  for (const Cause& cause : why.causes) {
    text += fmt::format("{:>3}. {:>5.1f} %  {}\n", ++number, 100 * why.share(cause.seconds), cause.title);
    text += fmt::format("{:14}{}\n", "", cause.says);
    if (why.share(cause.seconds) >= kWorthMending) text += fmt::format("{:14}remedy: {}\n", "", cause.remedy);
  }
  text += fmt::format("{:5}{:>5.1f} %  computing: forward and backward\n", "", 100 * why.share(why.computing));
  for (const std::string& remark : why.remarks) text += fmt::format("to know: {}\n", remark);
  return text;
}

std::string to_json(const Explanation& why, const std::string& run) {
  nlohmann::ordered_json json = {{"run", run},
                                 {"members", why.members},
                                 {"steps", why.steps},
                                 {"seconds", why.seconds},
                                 {"computing", why.share(why.computing)},
                                 {"headline", headline(why)},
                                 {"causes", nlohmann::ordered_json::array()},
                                 {"remarks", why.remarks}};
  for (const Cause& cause : why.causes) {
    json["causes"].push_back({{"cause", name(cause.kind)},
                              {"seconds", cause.seconds},
                              {"share", why.share(cause.seconds)},
                              {"title", cause.title},
                              {"says", cause.says},
                              {"remedy", cause.remedy}});
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace shoal::observe
