// A line's fields between delimiters, in quotes or not (RFC 4180), and the delimiter that divides some lines. Pure; threads: any.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::data {

// A field without spaces around it and without its quotes; in `text` a quote may still be doubled (RFC 4180, 2.7).
struct Field {
  std::string_view text;
  bool doubled = false;

  std::string_view plain(std::string& room) const;  // in `room`, where quotes are doubled
};

// The fields of a line, one after another. A delimiter " " is any run of spaces and tabs.
class Fields {
 public:
  enum class Quotes { read, ignore };
  Fields(std::string_view line, std::string_view delimiter, Quotes quotes = Quotes::read);

  // False where there is no further field, and where a quote is not closed. What begins with a quote and goes on behind the closing one is taken as
  // it is.
  bool next(Field& field);
  bool open_quote() const { return open_quote_; }

 private:
  const char* move_on(const char* at);  // to behind the next delimiter; returns where it begins, or the end
  const char* closing_quote(const char* at, bool& doubled) const;
  bool ends_field(const char* at) const;

  const char *at_, *end_;
  std::string_view delimiter_;
  char first_, other_;  // of the delimiter; a tab divides where a space does
  bool quotes_, open_quote_ = false;
};

std::vector<std::string> fields_of(std::string_view line, std::string_view delimiter, Fields::Quotes quotes = Fields::Quotes::read);

bool is_most(std::size_t part, std::size_t of);  // three of four: a few lines may be broken

// The first of the delimiters by which most lines have the same number of fields, at least so many, and that number. No delimiter: there is none.
struct Division {
  std::string_view delimiter;
  std::size_t fields = 0;
};
Division divide(std::span<const std::string> lines, std::span<const std::string_view> delimiters, std::size_t least,
                Fields::Quotes quotes = Fields::Quotes::read);

}  // namespace shoal::data
