// Plain text in its forms, into a Gathering. Each reader takes all lines, and throws Error{invalid_argument} with the place of the first fault.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "shoal/data/lines.h"
#include "shoal/text/gathering.h"
#include "shoal/text/tokens.h"

namespace shoal::text {

// The words of texts on their way into a Gathering.
class Texts {
 public:
  Texts(Tokens& tokens, Gathering& gathering) : tokens_(tokens), gathering_(gathering) {}
  Texts(const Texts&) = delete;

  void add(std::string_view text) { whole_ = tokens_.each(text, take_) && whole_; }  // to the document
  void end(std::string_view name = {}) {
    if (!whole_) gathering_.broken_document();
    whole_ = true;
    gathering_.end_document(name);
  }

 private:
  Tokens& tokens_;
  Gathering& gathering_;
  Tokens::Take take_ = [this](std::string_view word) { gathering_.add(word); };
  bool whole_ = true;
};

void read_lines(data::Lines& lines, Tokens& tokens, Gathering& gathering);
void read_yahoo(data::Lines& lines, Gathering& gathering);
void read_mallet(data::Lines& lines, Tokens& tokens, Gathering& gathering);
void read_files(const std::vector<std::filesystem::path>& files, Tokens& tokens, Gathering& gathering);  // each is a document, called by its path

}  // namespace shoal::text
