// What a member is told as it starts: its place in the run and how it finds the others.
#pragma once

#include "app/far.h"
#include "app/launcher.h"
#include "app/meeting_point.h"

namespace shoal::app {

// How a member comes (net/again.h): as one of the first, in place of a lost one in that generation, or beside those that there are, by that attempt.
struct Comes {
  unsigned generation = 0, attempt = 0;
};
Environment environment_of(const Launch& what, unsigned rank, const MeetingPoint& at, const Comes& comes);
Assignment assignment_of(const Launch& what, unsigned rank, const MeetingPoint& at, const Comes& comes);  // on another host

}  // namespace shoal::app
