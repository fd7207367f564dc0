// From the process's stream to the member's file.
#include "shoal/observe/recorder.h"

#include <gtest/gtest.h>

#include "shoal/core/error.h"
#include "shoal/observe/run_events.h"
#include "tests/observe/a_run.h"

namespace shoal::observe {
namespace {

std::vector<Event> joined(const std::vector<Event>& events) {
  WireSpans wire;
  std::vector<Event> out;
  for (const Event& event : events) wire.add(event, out);
  wire.close(out);
  return out;
}

TEST(WireSpans, join_frames_that_follow_each_other) {
  const auto out = joined({{EventKind::sent, ms(0), ms(0), -1, 1, 10},
                           {EventKind::sent, ms(1), ms(1), -1, 1, 10},
                           {EventKind::sent, ms(3), ms(3), -1, 1, 10}});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].begin, ms(0));
  EXPECT_EQ(out[0].end, ms(3));
  EXPECT_EQ(out[0].value, 30);
}

TEST(WireSpans, keep_pauses_peers_and_directions_apart) {
  EXPECT_EQ(joined({{EventKind::sent, ms(0), ms(0), -1, 1, 10}, {EventKind::sent, ms(2.5), ms(2.5), -1, 1, 10}}).size(), 2u);
  EXPECT_EQ(joined({{EventKind::sent, ms(0), ms(0), -1, 1, 10}, {EventKind::sent, ms(1), ms(1), -1, 2, 10}}).size(), 2u);
  EXPECT_EQ(joined({{EventKind::sent, ms(0), ms(0), -1, 1, 10}, {EventKind::received, ms(0), ms(1), -1, 1, 10}}).size(), 2u);
}

TEST(WireSpans, end_after_twenty_milliseconds) {
  std::vector<Event> frames;
  for (int i = 0; i <= 40; ++i) frames.push_back({EventKind::sent, ms(i), ms(i), -1, 1, 1});
  const auto out = joined(frames);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].value, 21);
  EXPECT_EQ(out[1].value, 20);
}

TEST(WireSpans, pass_everything_else_on) {
  EXPECT_EQ(joined({{EventKind::forward, ms(0), ms(1)}, {EventKind::forward, ms(1), ms(2)}}).size(), 2u);
}

TEST(Recorder, writes_what_was_recorded_between_its_begin_and_end) {
  const OwnFolder own("recorder");
  const RunFolder folder = RunFolder::open(own.path());
  Events& events = Events::local();
  events.record({EventKind::note, steady_now(), steady_now()});  // before: recording is off
  {
    Recorder recorder(folder, 1, 2);
    const Instant now = steady_now();
    events.record({EventKind::exchange, now, now + Nanoseconds(5), 7, -1, 64, events.intern("fc.weight")});
    recorder.flush();
    events.record({EventKind::forward, now + Nanoseconds(9), now + Nanoseconds(10), 8});
    recorder.close();
    recorder.close();
  }
  events.record({EventKind::note, steady_now(), steady_now()});
  EXPECT_FALSE(events.enabled());

  const RunEvents run = read_run(folder);
  ASSERT_EQ(run.ranks.size(), 1u);
  EXPECT_EQ(run.ranks[0].who.rank, 1);
  EXPECT_EQ(run.ranks[0].who.pid, ::getpid());
  EXPECT_EQ(run.size, 2);
  const std::vector<Event>& written = run.ranks[0].events;
  ASSERT_EQ(written.size(), 4u);
  EXPECT_EQ(written[0].kind, EventKind::recording);  // its own begin, and at the end what flush() took
  EXPECT_EQ(written[0].begin, Instant(Nanoseconds(0)));
  EXPECT_EQ(written[0].end, written[0].begin);
  EXPECT_EQ(run.name_of(written[1]), "fc.weight");
  EXPECT_EQ(written[1].step, 7);
  EXPECT_EQ(written[2].begin - written[1].begin, Nanoseconds(9));
  EXPECT_EQ(written[3].kind, EventKind::recording);
  EXPECT_GT(written[3].end, written[3].begin);
  EXPECT_EQ(run.remarks, std::vector<std::string>{"rank 0 left no events in this folder"});
}

TEST(Recorder, says_in_the_file_how_many_events_came_too_fast) {
  const OwnFolder own("fast");
  const RunFolder folder = RunFolder::open(own.path());
  const Instant now = steady_now();
  Recorder recorder(folder, 0, 1);
  const std::uint64_t before = Events::local().dropped();
  for (int i = 0; i < 100'000; ++i) Events::local().record({EventKind::produced, now, now});
  const std::uint64_t dropped = Events::local().dropped() - before;
  ASSERT_GT(dropped, 0u);
  recorder.close();
  const RunEvents run = read_run(folder);
  const Event& last = run.ranks[0].events.back();
  EXPECT_EQ(last.kind, EventKind::note);
  EXPECT_EQ(run.name_of(last), std::to_string(dropped) + " events came faster than they were written and are missing");
}

TEST(Recorder, refuses_a_file_that_another_job_has_open) {
  const OwnFolder own("two-jobs");
  const RunFolder folder = RunFolder::open(own.path());
  const Recorder first(folder, 1, 2);
  try {
    const Recorder second(folder, 1, 2);
    FAIL() << "two jobs write one file";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_EQ(error.fact(), "another job writes its events there");
  }
}

TEST(Recorder, refuses_a_folder_that_is_gone) {
  const OwnFolder own("gone");
  const RunFolder folder = RunFolder::open(own.path());
  std::filesystem::remove_all(own.path());
  try {
    Recorder recorder(folder, 0, 1);
    FAIL() << "recorded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::io);
    EXPECT_EQ(error.what(), (own.path() / "events-0.jsonl").string() + ": cannot be written: No such file or directory");
  }
}

}  // namespace
}  // namespace shoal::observe
