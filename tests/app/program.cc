#include "tests/app/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>

extern char** environ;

namespace shoal::app::test {

namespace fs = std::filesystem;

namespace {

long long now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::vector<std::string> environment(const Program::Variables& variables) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!text.starts_with("SHOAL_") && !text.starts_with("OMP_NUM_THREADS=")) all.push_back(text);
  }
  for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (auto& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

Folder::Folder() {
  std::string name = fs::temp_directory_path() / "shoal-test-XXXXXX";
  path_ = ::mkdtemp(name.data());
}
Folder::~Folder() {
  std::error_code error;
  fs::remove_all(path_, error);
}
fs::path Folder::only_run() const {
  std::vector<fs::path> runs;
  for (const auto& entry : fs::directory_iterator(path_ / "runs")) runs.push_back(entry.path());
  EXPECT_EQ(runs.size(), 1u);
  return runs.at(0);
}
void Folder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name) << text;
}

std::string read_file(const fs::path& file) {
  std::ifstream input(file);
  std::stringstream text;
  text << input.rdbuf();
  return text.str();
}

bool alive(pid_t pid) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.substr(name_end, 4).find('Z') == std::string::npos;
}

Program::Program(const Folder& folder, const std::vector<std::string>& words, const Variables& variables)
    : deadline_ms_(now_ms() + 1000LL * SHOAL_PROGRAM_SECONDS) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  auto argv_words = words, env_words = environment(variables);
  const auto argv = pointers(argv_words), envp = pointers(env_words);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    if (::chdir(folder.path().c_str()) == 0) ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  fds_[0] = out[0];
  fds_[1] = err[0];
}

Program::~Program() {
  if (pid_ > 0) {
    ::kill(pid_, SIGTERM);
    wait();
  }
}

void Program::signal(int number) const { ::kill(pid_, number); }

// One round of reading; false when both streams ended or time is up.
bool Program::read_more() {
  pollfd fds[2] = {{fds_[0], POLLIN, 0}, {fds_[1], POLLIN, 0}};
  const long long left = deadline_ms_ - now_ms();
  if ((fds_[0] < 0 && fds_[1] < 0) || left <= 0 || ::poll(fds, 2, static_cast<int>(left)) <= 0) return false;
  for (int i : {0, 1}) {
    char buffer[4096];
    if (!fds[i].revents) continue;
    const ssize_t got = ::read(fds_[i], buffer, sizeof buffer);
    if (got > 0) {
      (i == 0 ? outcome_.out : outcome_.err).append(buffer, static_cast<std::size_t>(got));
    } else {
      ::close(std::exchange(fds_[i], -1));
    }
  }
  return true;
}

std::vector<std::string> Program::lines(std::size_t count) {
  while (static_cast<std::size_t>(std::count(outcome_.out.begin(), outcome_.out.end(), '\n')) < count) {
    if (!read_more()) {
      ADD_FAILURE() << "expected " << count << " lines, got:\n" << outcome_.out << outcome_.err;
      throw std::runtime_error("too few lines");
    }
  }
  std::istringstream text(outcome_.out);
  std::vector<std::string> found(count);
  for (auto& line : found) std::getline(text, line);
  return found;
}

Outcome Program::wait() {
  while (read_more()) {
  }
  if (now_ms() >= deadline_ms_) {
    ADD_FAILURE() << "still running after " << SHOAL_PROGRAM_SECONDS << " s:\n" << outcome_.out << outcome_.err;
    ::kill(pid_, SIGKILL);
  }
  for (int& fd : fds_) {
    if (fd >= 0) ::close(std::exchange(fd, -1));
  }
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  outcome_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome_;
}

Outcome shoal(const Folder& folder, std::vector<std::string> arguments, const Program::Variables& variables) {
  arguments.insert(arguments.begin(), SHOAL_PROGRAM);
  return Program(folder, arguments, variables).wait();
}

std::string trained_model(const Folder& folder, std::vector<std::string> words, const std::string& output, const std::string& epochs, bool resume) {
  words.insert(words.end(), {"--output", output, "--epochs", epochs});
  if (resume) words.emplace_back("--resume");
  const auto outcome = shoal(folder, words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return read_file(folder.path() / output / "model.safetensors");
}

std::vector<std::string> run_script(unsigned members, const std::string& script) {
  return {"run", "-n", std::to_string(members), "--", "/bin/sh", "-c", script};
}

}  // namespace shoal::app::test
