// The one exception of Shoal's public boundaries: what happened, where, and what to do about it.
// Who first knows the cause words it; everybody else passes it on unchanged, so that one failure is
// one line. An asynchronous operation carries it in its completion. Values; share across threads.
#pragma once

#include <exception>
#include <string>

namespace shoal {

enum class Code {
  invalid_argument,  // a flag, a file, a shape: the user can mend it              exit 2
  mismatch,          // members disagree about code, configuration or a collective  exit 2
  unsupported,       // this build or machine lacks it                              exit 2
  io,                // a file, a socket or the memory of this machine failed       exit 1
  timeout,           // an operation's deadline passed while its peers were alive   exit 1
  cancelled,         // ended because its job is closing                            exit 1
  internal,          // a fault of Shoal itself                                     exit 1
  peer_lost,         // a member died or cannot be heard                            exit 3
};

const char* name(Code code);  // "peer_lost"
int exit_code(Code code);     // the process's exit status for an uncaught error

class Error : public std::exception {
 public:
  // `what`: the fact, one clause. `where`: file:line, flag, rank or operation; may be empty.
  // `hint`: what to do; may be empty. None of them contains a line break (they are replaced by spaces).
  Error(Code code, std::string what, std::string where = {}, std::string hint = {});

  Code code() const { return code_; }
  const std::string& fact() const { return what_; }
  const std::string& where() const { return where_; }
  const std::string& hint() const { return hint_; }
  // "where: what (hint)", one line without a trailing line break.
  const char* what() const noexcept override { return line_.c_str(); }

 private:
  Code code_;
  std::string what_, where_, hint_, line_;
};

// What somebody gave is wrong: throws Error{invalid_argument}.
[[noreturn]] void refuse(const std::string& what, const std::string& where, const std::string& hint = {});

}  // namespace shoal
