// What a member is told as it starts: its place in the run and how it finds the others.
#pragma once

#include "app/far.h"
#include "app/launcher.h"
#include "app/meeting_point.h"

namespace shoal::app {

// generation: 0, or in which generation of the run it comes in place of a lost one (net/again.h).
Environment environment_of(const Launch& what, unsigned rank, const MeetingPoint& at, unsigned generation);
Assignment assignment_of(const Launch& what, unsigned rank, const MeetingPoint& at, unsigned generation);  // on another host

}  // namespace shoal::app
