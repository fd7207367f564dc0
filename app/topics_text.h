// What `shoal topics` reads: the flags that say which texts, in which format, and which words of them count. The same for all of its verbs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/command.h"
#include "shoal/learn/model_folder.h"
#include "shoal/text/source.h"

namespace shoal::app {

struct TextOptions {
  std::vector<std::string> files;
  std::string format = "auto", words_file, column, token_pattern, stop_words, min_documents, max_documents, pairs;
  std::uint32_t top_words = 0, most_words = 0;
  bool keep_case = false, on_disk = false;

  // Throws Error{invalid_argument} naming the flag that is wrong.
  text::Source source() const;
  // Which files, and how they are read, for a model's config.
  learn::Json read_from() const;
  // How words are told from the text, for a model's config; and taken from there, so that a model's texts are read alike.
  learn::Json words() const;
  void words_as(const learn::Json& words);
};

void declare_texts(CLI::App& app, TextOptions& options);  // the files and their format
void declare_words(CLI::App& app, TextOptions& options);  // which words count: where there is no model that says so

}  // namespace shoal::app
