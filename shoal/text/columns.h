// CSV and TSV, a document a record, of which one field is the text. Threads: one at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "shoal/data/lines.h"
#include "shoal/text/texts.h"

namespace shoal::text {

// Which field of a record is the text.
struct Columns {
  std::string delimiter = {}, text_called = {};  // called: by the header, if there is one
  std::size_t text = 0;
  std::optional<std::size_t> name = {};  // of the document: the first field, where it is not the text
  bool header = false;
};
// By the first lines; column: as in Source. Throws Error{invalid_argument} where nothing divides them, and for a column that is not there.
Columns columns_of(std::span<const std::string> first_lines, const std::string& column, const std::string& where);
std::string to_text(const Columns& columns);
// A record may go on over several lines, in quotes; between tabs it may not, and a quote that is not closed is a letter like others. Throws
// Error{invalid_argument} with the place of the first fault.
void read_columns(data::Lines& lines, const Columns& columns, Texts& texts);

}  // namespace shoal::text
