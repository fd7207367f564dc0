// What a member is told as it starts: its place in the run and how it finds the others.
#pragma once

#include "app/far.h"
#include "app/launcher.h"
#include "app/meeting_point.h"

namespace shoal::app {

Environment environment_of(const Launch& what, unsigned rank, const MeetingPoint& at);
Assignment assignment_of(const Launch& what, unsigned rank, const MeetingPoint& at);  // on another host

}  // namespace shoal::app
