// Files without a name: they go with the last descriptor and mapping, whatever ends the process.
#pragma once

#include <filesystem>
#include <string>

namespace shoal {

// In that folder, to be read and written; a descriptor that programs started from here do not have. -1, with errno, where none can be made.
// what: for who looks at the mappings of a process, where it reads ".shoal-WHAT-...".
int open_unnamed(const std::filesystem::path& folder, const std::string& what);

}  // namespace shoal
