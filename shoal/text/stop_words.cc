#include "shoal/text/stop_words.h"

#include <string>

#include "shoal/data/lines.h"

namespace shoal::text {
namespace {

// Function words: they say how a sentence is made, not what it is about.
constexpr std::string_view kEnglish =
    // articles, demonstratives, quantities
    "a an the this that these those such all any both each either every few less little many more most much neither no none other others another "
    "same several some enough own one ones "
    // pronouns
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its itself they "
    "them their theirs themselves who whom whose which what whoever whatever whichever anybody anyone anything everybody everyone everything "
    "nobody nothing somebody someone something "
    // prepositions
    "about above across after against along among around as at before behind below beneath beside besides between beyond by despite down during "
    "except for from in inside into like near of off on onto out outside over past per since through throughout till to toward towards under "
    "underneath unlike until up upon versus via with within without "
    // conjunctions
    "and or nor but if because although though unless whereas whether while than so lest yet "
    // auxiliary verbs
    "am is are was were be been being have has had having do does did doing done can could may might must ought shall should will would cannot "
    "let lets "
    // adverbs of the same use
    "not too very quite rather almost also again already always ever never often once only just even still then thus hence therefore however "
    "otherwise instead perhaps maybe else etc here there where when why how wherever whenever now soon away back further mostly merely "
    "nevertheless moreover meanwhile somewhat somehow sometimes somewhere anyhow anyway elsewhere everywhere nowhere thereby wherein whereby "
    // short forms, whole and as what is left of them where the apostrophe divides
    "aren't can't couldn't didn't doesn't don't hadn't hasn't haven't isn't mightn't mustn't needn't shan't shouldn't wasn't weren't won't "
    "wouldn't ain't i'm i've i'd i'll you're you've you'd you'll he's he'd he'll she's she'd she'll it's it'd it'll we're we've we'd we'll "
    "they're they've they'd they'll that's that'll there's here's what's where's who's how's let's s t d m ll re ve don didn doesn isn aren wasn "
    "weren couldn wouldn shouldn hasn haven hadn won ain e.g i.e ";

}  // namespace

data::Names read_stop_words(std::string_view list) {
  data::Names words;
  if (list == "english") {
    for (std::string_view left = kEnglish; !left.empty(); left.remove_prefix(left.find(' ') + 1)) words.number(left.substr(0, left.find(' ')));
  } else if (list != "none") {
    data::Lines lines({std::filesystem::path(list)});
    for (std::string_view line; lines.next(line);) {
      line = line.substr(0, line.find('#'));
      const std::size_t begin = line.find_first_not_of(" \t");
      if (begin == std::string_view::npos) continue;
      words.number(line.substr(begin, line.find_last_not_of(" \t") + 1 - begin));
    }
  }
  return words;
}

}  // namespace shoal::text
