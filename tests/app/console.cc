// What reaches the screen when members write bytes. The expected screen is written out.
#include "app/console.h"

#include <gtest/gtest.h>

namespace shoal::app {
namespace {

struct Shown {
  std::string out, err;
};

Console make(Shown& shown, unsigned members, bool terminal = false,
             Console::Show show = Console::Show::every_rank) {
  const auto to = [](std::string& text) { return [&text](std::string_view more) { text += more; }; };
  return Console(members,
                 {Console::Screen{terminal, false, 20, to(shown.out)}, {terminal, false, 20, to(shown.err)}},
                 show);
}

TEST(console, every_line_carries_its_rank) {
  Shown shown;
  Console console = make(shown, 3);
  console.take(0, Console::out, "one\ntwo\n");
  console.take(2, Console::err, "bad\n");
  EXPECT_EQ(shown.out, "[0] one\n[0] two\n");
  EXPECT_EQ(shown.err, "[2] bad\n");
}

TEST(console, a_line_that_comes_in_pieces_is_shown_once_and_whole) {
  Shown shown;
  Console console = make(shown, 2);
  console.take(0, Console::out, "he");
  console.take(1, Console::out, "other\n");
  console.take(0, Console::out, "llo\nre");
  EXPECT_EQ(shown.out, "[1] other\n[0] hello\n");
  console.finish(0, Console::out);
  EXPECT_EQ(shown.out, "[1] other\n[0] hello\n[0] re\n");
}

TEST(console, a_redrawn_line_leaves_its_last_state_where_there_is_no_terminal) {
  Shown shown;
  Console console = make(shown, 1);
  console.take(0, Console::out, "10%\r");
  console.take(0, Console::out, "50%\r100%\r");
  console.take(0, Console::out, "\nnext\r\n");
  EXPECT_EQ(shown.out, "[0] 100%\n[0] next\n");
}

TEST(console, a_terminal_shows_the_redrawn_line_below_the_others) {
  Shown shown;
  Console console = make(shown, 2, true);
  console.take(0, Console::out, "10%\r");
  EXPECT_EQ(shown.out, "[0] 10%");
  shown.out.clear();
  console.take(1, Console::out, "hello\n");
  EXPECT_EQ(shown.out, "\r\x1b[K[1] hello\n[0] 10%");
  shown.out.clear();
  console.take(0, Console::out, "20%\r");
  EXPECT_EQ(shown.out, "\r\x1b[K[0] 20%");
  shown.out.clear();
  console.take(0, Console::out, "\n");
  EXPECT_EQ(shown.out, "\r\x1b[K[0] 20%\n");
}

TEST(console, a_bar_that_begins_with_the_return_is_drawn_at_once_and_fits_the_screen) {
  Shown shown;
  Console console = make(shown, 1, true);
  console.take(0, Console::err, "\r0123456789abcdefghij");
  EXPECT_EQ(shown.err, "[0] 0123456789abcde");
}

TEST(console, a_line_without_end_is_cut) {
  Shown shown;
  Console console = make(shown, 1);
  for (int i = 0; i < 100; ++i) console.take(0, Console::out, std::string(1000, 'x'));
  EXPECT_GE(shown.out.size(), 64u * 1024);
}

TEST(console, the_last_words_of_a_member_are_kept) {
  Shown shown;
  Console console = make(shown, 2);
  console.take(1, Console::err, "Traceback\nshoal: no data\n\n  \n");
  EXPECT_EQ(console.last_error(1), "shoal: no data");
  EXPECT_EQ(console.last_error(0), "");
}

TEST(console, rank_0_alone_is_shown_as_it_is_but_every_failure_is_heard) {
  Shown shown;
  Console console = make(shown, 2, false, Console::Show::rank_0);
  console.take(0, Console::out, "{}\n");
  console.take(1, Console::out, "{}\n");
  console.take(1, Console::err, "oh\n");
  EXPECT_EQ(shown.out, "{}\n");
  EXPECT_EQ(shown.err, "[1] oh\n");
}

TEST(console, where_one_member_speaks_it_is_heard_whichever_it_is) {
  Shown shown;
  Console console = make(shown, 2, false, Console::Show::one_speaks);
  console.take(1, Console::out, "{}\n");
  console.take(0, Console::err, "oh\n");
  console.take(1, Console::err, "oh\n");
  EXPECT_EQ(shown.out, "{}\n");
  EXPECT_EQ(shown.err, "oh\n[1] oh\n");
}

}  // namespace
}  // namespace shoal::app
