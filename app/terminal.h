// What this process shows its user: a stream that may be a terminal, a pipe or a file.
#pragma once

#include "app/console.h"

namespace shoal::app {

// Of a file descriptor of this process. Its write() gives up on a reader that reads nothing for 5 s.
Console::Screen screen(int fd);

}  // namespace shoal::app
