// Where a process finds itself in its environment, whoever started it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/net/job.h"
#include "shoal/net/nodelist.h"
#include "shoal/net/resolve.h"

namespace shoal::net {
namespace {

class Environment : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  // Every variable that a launcher sets, whoever runs this test.
  static void clear() {
    std::vector<std::string> names;
    for (char** entry = environ; *entry; ++entry) {
      const std::string text = *entry;
      for (const char* prefix : {"SHOAL_", "PMIX_", "SLURM_", "OMPI_", "TORCHELASTIC_", "RANK=", "WORLD_SIZE=", "JOB_COMPLETION_INDEX="}) {
        if (text.rfind(prefix, 0) == 0) names.push_back(text.substr(0, text.find('=')));
      }
    }
    for (const std::string& name : names) unsetenv(name.c_str());
  }
  static Place place_in(const std::map<std::string, std::string>& variables) {
    clear();
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    return find_place();
  }
  static std::string complaint() {
    try {
      find_place();
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.what();
    }
  }
};

TEST_F(Environment, nothing_set_means_alone) {
  const Place place = find_place();
  EXPECT_EQ(place.launcher, Place::Launcher::alone);
  EXPECT_EQ(place.size, 1u);
}

TEST_F(Environment, shoal_goes_before_torchrun) {
  setenv("SHOAL_RANK", "1", 1);
  setenv("SHOAL_SIZE", "4", 1);
  setenv("SHOAL_COORD", "127.0.0.1:1", 1);
  setenv("RANK", "0", 1);
  setenv("WORLD_SIZE", "2", 1);
  const Place place = find_place();
  EXPECT_EQ(place.launcher, Place::Launcher::shoal);
  EXPECT_EQ(place.rank, 1u);
  EXPECT_EQ(place.size, 4u);
}

TEST_F(Environment, torchrun_is_found) {
  setenv("RANK", "1", 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("TORCHELASTIC_RESTART_COUNT", "3", 1);
  const Place place = find_place();
  EXPECT_EQ(place.launcher, Place::Launcher::torchrun);
  EXPECT_EQ(place.generation, 3u);
}

// What the launchers set was recorded from real ones (Slurm 22.05, Open MPI 4.1.4, torchrun 2.13), less what nobody reads.
const std::map<std::string, std::string> kSrun = {
    {"SLURM_JOB_ID", "71"}, {"SLURM_STEP_ID", "2"}, {"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "4"},
    {"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_STEP_NODELIST", "n[09-10]"}, {"SLURM_NODELIST", "n[08-11]"}, {"SLURM_LOCALID", "1"}};
const std::map<std::string, std::string> kSrunPmix = {{"PMIX_RANK", "3"}, {"PMIX_NAMESPACE", "slurm.pmix.71.2"}};
const std::map<std::string, std::string> kMpirun = {
    {"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "2208301057"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}};
const std::map<std::string, std::string> kTorchrun = {
    {"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "n09"}, {"MASTER_PORT", "40001"},
    {"TORCHELASTIC_RUN_ID", "run7"}, {"TORCHELASTIC_RESTART_COUNT", "2"}};

std::map<std::string, std::string> both(std::map<std::string, std::string> first, const std::map<std::string, std::string>& second) {
  first.insert(second.begin(), second.end());
  return first;
}

TEST_F(Environment, a_step_of_srun_meets_on_its_first_host) {
  const Place place = place_in(kSrun);
  EXPECT_EQ(place.launcher, Place::Launcher::slurm);
  EXPECT_EQ(place.rank, 3u);
  EXPECT_EQ(place.size, 4u);  // of the step, not of the allocation
  EXPECT_EQ(place.hosts, 2u);
  EXPECT_EQ(place.job, "slurm.71.2");
  EXPECT_EQ(place.coordinator.rfind("n09:2", 0), 0u) << place.coordinator;
  EXPECT_EQ(place_in(both(kSrun, {{"SLURM_STEP_RESV_PORTS", "12005-12006"}})).coordinator, "n09:12005");
  EXPECT_EQ(place_in(both(kSrun, {{"SHOAL_PORT_RANGE", "20007-20007"}})).coordinator, "n09:20007");
  EXPECT_EQ(place_in(both(kSrun, {{"SHOAL_COORD", "10.0.0.9:4000"}})).coordinator, "10.0.0.9:4000");
  EXPECT_EQ(place_in(both(kSrun, {{"SLURM_RESTART_COUNT", "2"}})).generation, 2u);
}

TEST_F(Environment, two_steps_of_one_job_have_ports_of_their_own) {
  auto other = kSrun;
  other["SLURM_STEP_ID"] = "3";
  EXPECT_NE(place_in(kSrun).coordinator, place_in(other).coordinator);
  EXPECT_EQ(place_in(kSrun).coordinator, place_in(kSrun).coordinator);
}

TEST_F(Environment, a_step_on_one_host_meets_on_its_loopback) {
  auto one = kSrun;
  one["SLURM_STEP_NODELIST"] = "n09";
  EXPECT_EQ(place_in(one).coordinator.rfind("127.0.0.1:", 0), 0u);
  EXPECT_EQ(place_in(one).hosts, 1u);
}

// Slurm sets rank and size there as well, and yet it is one process.
TEST_F(Environment, a_batch_script_is_alone) {
  auto script = kSrun;
  for (const char* step : {"SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES", "SLURM_STEP_NODELIST"}) script.erase(step);
  EXPECT_EQ(place_in(script).launcher, Place::Launcher::alone);
}

TEST_F(Environment, pmix_goes_before_what_else_its_launcher_sets) {
  const Place step = place_in(both(kSrun, kSrunPmix));
  EXPECT_EQ(step.launcher, Place::Launcher::pmix);
  EXPECT_EQ(step.rank, 3u);
  EXPECT_EQ(step.size, 4u);
  EXPECT_EQ(step.job, "slurm.pmix.71.2");
  const Place world = place_in(both(kSrun, kMpirun));  // mpirun in salloc
  EXPECT_EQ(world.launcher, Place::Launcher::pmix);
  EXPECT_EQ(world.rank, 1u);
  EXPECT_EQ(world.size, 2u);
}

TEST_F(Environment, torchrun_goes_before_the_launcher_that_started_it) {
  for (const auto& outer : {kSrun, both(kSrun, kSrunPmix), kMpirun}) {
    const Place place = place_in(both(kTorchrun, outer));
    EXPECT_EQ(place.launcher, Place::Launcher::torchrun);
    EXPECT_EQ(place.rank, 5u);
    EXPECT_EQ(place.size, 8u);
    EXPECT_EQ(place.generation, 2u);
  }
}

// A job script exports them, once and for all of its members.
TEST_F(Environment, rank_and_world_size_without_torchrun_count_only_where_there_is_no_launcher) {
  const std::map<std::string, std::string> exported = {{"RANK", "0"}, {"WORLD_SIZE", "2"}};
  EXPECT_EQ(place_in(both(exported, kSrun)).launcher, Place::Launcher::slurm);
  EXPECT_EQ(place_in(both(exported, kMpirun)).launcher, Place::Launcher::pmix);
  EXPECT_EQ(place_in(exported).launcher, Place::Launcher::torchrun);
}

TEST_F(Environment, openmpi_without_pmix_needs_an_address) {
  const std::map<std::string, std::string> world = {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  const Place place = place_in(both(world, {{"SHOAL_COORD", "n09:4000"}}));
  EXPECT_EQ(place.launcher, Place::Launcher::openmpi);
  EXPECT_EQ(place.coordinator, "n09:4000");
  clear();
  for (const auto& [name, value] : world) setenv(name.c_str(), value.c_str(), 1);
  EXPECT_NE(complaint().find("SHOAL_COORD: not set, but this job has 2 members (this mpirun has no PMIx"), std::string::npos) << complaint();
}

TEST_F(Environment, a_pod_of_an_indexed_job_is_a_member_where_the_size_is_set) {
  EXPECT_EQ(place_in({{"JOB_COMPLETION_INDEX", "2"}}).launcher, Place::Launcher::alone);
  const Place place = place_in({{"JOB_COMPLETION_INDEX", "2"}, {"SHOAL_SIZE", "4"}, {"SHOAL_COORD", "train-0.train:29400"}});
  EXPECT_EQ(place.launcher, Place::Launcher::kubernetes);
  EXPECT_EQ(place.rank, 2u);
  EXPECT_EQ(place.size, 4u);
}

TEST_F(Environment, mistakes_are_named) {
  setenv("SHOAL_RANK", "1", 1);
  EXPECT_EQ(complaint(), "SHOAL_SIZE: not set, but SHOAL_RANK is (a launcher sets both; unset both to run alone)");
  setenv("SHOAL_SIZE", "four", 1);
  EXPECT_EQ(complaint(), "SHOAL_SIZE: \"four\" is not a number from 0 to 65536");
  setenv("SHOAL_SIZE", "1", 1);
  EXPECT_EQ(complaint(), "SHOAL_RANK: rank 1 is not below the size 1");
  setenv("SHOAL_SIZE", "2", 1);
  EXPECT_NE(complaint().find("SHOAL_COORD: not set"), std::string::npos);
}

TEST_F(Environment, an_open_secret_file_is_refused) {
  char path[] = "/tmp/shoal-secret-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_EQ(write(fd, "hush\n", 5), 5);
  fchmod(fd, 0644);
  close(fd);
  setenv("SHOAL_SECRET_FILE", path, 1);
  EXPECT_THROW(find_secret(), Error);
  chmod(path, 0600);
  EXPECT_EQ(find_secret(), "hush");
  std::ofstream(path) << std::string(4096, 's');
  EXPECT_EQ(find_secret()->size(), 4096u);
  std::ofstream(path) << std::string(4097, 's');
  EXPECT_THROW(find_secret(), Error);
  std::ofstream(path) << "hush";
  if (chown(path, 65534, 65534) == 0) {  // as root
    EXPECT_THROW(find_secret(), Error);
  }
  unlink(path);
}

TEST_F(Environment, a_secret_is_in_a_plain_file) {
  const auto complaint = [](const char* path) -> std::string {
    setenv("SHOAL_SECRET_FILE", path, 1);
    try {
      find_secret();
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(complaint("/tmp"), "SHOAL_SECRET_FILE: /tmp is no plain file") << "and no advice to chmod it";
  EXPECT_EQ(complaint("/dev/zero"), "SHOAL_SECRET_FILE: /dev/zero is no plain file");
  EXPECT_EQ(complaint("/no/such"), "SHOAL_SECRET_FILE: cannot read /no/such: No such file or directory");
}

TEST_F(Environment, says_how_long_members_are_waited_for) {
  EXPECT_EQ(with_environment({}).patience, std::chrono::seconds(60));
  setenv("SHOAL_JOIN_TIMEOUT", "900", 1);
  EXPECT_EQ(with_environment({}).patience, std::chrono::seconds(900));
  JoinOptions own;
  own.patience = std::chrono::seconds(5);
  EXPECT_EQ(with_environment(own).patience, std::chrono::seconds(5));
  for (const char* wrong : {"0", "-1", "soon", "1.5"}) {
    setenv("SHOAL_JOIN_TIMEOUT", wrong, 1);
    EXPECT_THROW(with_environment({}), Error) << wrong;
  }
}

TEST_F(Environment, says_who_only_serves) {
  EXPECT_FALSE(*with_environment({}).serves);
  setenv("SHOAL_ROLE", "server", 1);
  EXPECT_TRUE(*with_environment({}).serves);
  setenv("SHOAL_ROLE", "nonsense", 1);
  try {
    with_environment({});
    FAIL() << "it has no role";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "SHOAL_ROLE: \"nonsense\" is neither worker nor server");
  }
}

TEST(Nodelist, short_forms_are_spelled_out) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(expand_nodelist("n7"), Names({"n7"}));
  EXPECT_EQ(expand_nodelist("n[01-03,7],login2"), Names({"n01", "n02", "n03", "n7", "login2"}));
  EXPECT_EQ(expand_nodelist("n[9-11]"), Names({"n9", "n10", "n11"}));
  EXPECT_EQ(expand_nodelist("r[1-2]-n[08-09].lan"), Names({"r1-n08.lan", "r1-n09.lan", "r2-n08.lan", "r2-n09.lan"}));
}

TEST(Nodelist, what_is_none_is_refused) {
  for (const char* wrong : {"", "n[1-", "n[1-3", "n]1[", "n[3-1]", "n[a-b]", "a,,b", "n[0-99999]", "n[1-256][1-257]", "n[99999999999]"}) {
    EXPECT_THROW(expand_nodelist(wrong), Error) << wrong;
  }
}

TEST(Ports, a_range_is_read) {
  EXPECT_EQ(parse_port_range("20000-20100", "here").first, 20000);
  EXPECT_EQ(parse_port_range("20000-20100", "here").last, 20100);
  for (const char* wrong : {"", "20000", "20100-20000", "0-5", "20000-70000", "a-b", "1-2-3"}) {
    EXPECT_THROW(parse_port_range(wrong, "here"), Error) << wrong;
  }
}

TEST(Names, stand_for_addresses_and_what_they_stand_for_is_said) {
  const Resolved all = resolve("10.0.0.7:4000,[fd00::7]:4000,localhost:5", "here", std::chrono::seconds(60));
  ASSERT_GE(all.endpoints.size(), 3u);
  EXPECT_EQ(show(all.endpoints[0]), "10.0.0.7:4000");
  EXPECT_EQ(show(all.endpoints[1]), "[fd00::7]:4000");
  EXPECT_TRUE(all.endpoints[2].address().is_loopback());
  EXPECT_EQ(all.words.rfind("10.0.0.7:4000, [fd00::7]:4000, localhost:5 (", 0), 0u) << all.words;
  const Resolved unknown = resolve("no-such-host.invalid:5", "here", std::chrono::seconds(60));
  EXPECT_TRUE(unknown.endpoints.empty());
  EXPECT_EQ(unknown.words, "no-such-host.invalid:5 (an unknown name)");
}

TEST(Names, without_a_port_are_refused_before_they_are_looked_up) {
  EXPECT_EQ(port_in("node7:29400,10.0.0.7:29401", "here"), 29400);
  for (const char* wrong : {"host", "host:", ":5", "host:0", "host:70000", "host-host", ""}) {
    EXPECT_THROW(port_in(wrong, "here"), Error) << wrong;
    EXPECT_THROW(resolve(wrong, "here", Nanoseconds::zero()), Error) << wrong;
  }
}

}  // namespace
}  // namespace shoal::net
