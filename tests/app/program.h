// The real program as a child of a test: its own folder, none of our SHOAL_* variables, both outputs read to
// their end. Every wait has a deadline of 30 s (120 s under sanitizers), after which the program is killed and the test fails.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace shoal::app::test {

struct Outcome {
  int status = -1;  // exit status, or 128 + signal
  std::string out, err;
};

// A new empty folder, removed with this object.
class Folder {
 public:
  Folder();
  ~Folder();
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path only_run() const;  // the one folder in runs/
  void write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& file);
bool alive(pid_t pid);  // a zombie is not

class Program {
 public:
  using Variables = std::map<std::string, std::string>;
  Program(const Folder& folder, const std::vector<std::string>& words, const Variables& variables = {});
  ~Program();

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Reads until its out contains `count` complete lines, and returns them.
  std::vector<std::string> lines(std::size_t count);
  Outcome wait();

 private:
  bool read_more();

  pid_t pid_;
  int fds_[2];
  Outcome outcome_;
  long long deadline_ms_;
};

// shoal ARGUMENTS..., to its end.
Outcome shoal(const Folder& folder, std::vector<std::string> arguments,
              const Program::Variables& variables = {});
// A learner's `train`, with these words and into the folder `output`; the model that is there then.
std::string trained_model(const Folder& folder, std::vector<std::string> words, const std::string& output, const std::string& epochs, bool resume);
// As a shell would split nothing: a member that runs this script.
std::vector<std::string> run_script(unsigned members, const std::string& script);

}  // namespace shoal::app::test
