// Words that say nothing of what a text is about. Threads: any.
#pragma once

#include <string_view>

#include "shoal/data/names.h"

namespace shoal::text {

// The list of that name or file (rules.h): "english" (articles, pronouns, prepositions, conjunctions, auxiliary verbs, their short forms, and
// adverbs of the same use), "none", or a file with a word a line, "#" beginning a comment. Throws Error{invalid_argument}
// as Lines does.
data::Names read_stop_words(std::string_view list);

}  // namespace shoal::text
