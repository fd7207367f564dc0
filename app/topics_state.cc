#include "app/topics_state.h"

namespace shoal::app {

learn::topic::PeerState StateFlags::read(const std::string& file) const {
  return learn::topic::read_state(file, learn::topic::parse_state_format(format), {words_file, topics, alpha_sum, beta});
}

void StateFlags::check() const {
  if (on()) return;
  const auto needs = [](bool given, const char* flag) {
    if (given) refuse("is of another program's topics of tokens", flag, "say with --state whose they are, or leave it out");
  };
  needs(!words_file.empty(), "--words-file");
  needs(topics.has_value(), "--topics");
  needs(alpha_sum.has_value(), "--alpha-sum");
  needs(beta.has_value(), "--beta");
}

void declare_state(CLI::App& app, StateFlags& flags) {
  flag(app, "--state", flags.format,
       "the model is another program's topics of tokens: mallet (--output-state), warplda (.z.estimate), lightlda (block.N), "
       "tomotopy "
       "(a file of LDAModel.save)");
  flag(app, "--words-file", flags.words_file, "of --state: the words, a line each (default of warplda: .vocab beside)");
  flag(app, "-k,--topics", flags.topics, "of --state, where the file does not say: how many there are");
  flag(app, "--alpha-sum", flags.alpha_sum, "of --state, where the file does not say: alpha of all topics together");
  flag(app, "--beta", flags.beta, "of --state, where the file does not say");
}

}  // namespace shoal::app
