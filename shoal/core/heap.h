// What a step frees the next one allocates again: gradients, and what forward keeps for backward. glibc gives the end of its heap back to the kernel
// when that much of it is free, so that each page is taken, cleared and mapped anew in each step: up to a fifth of a step's time (docs/training-measured.md).
#pragma once

namespace shoal {

// From now on memory that was freed stays with the process, blocks of up to 32 MB; larger ones are mapped one by one, as before. The process keeps what
// it had at most. False where that is not ours to say: the environment does (MALLOC_..., GLIBC_TUNABLES), or the C library is not glibc. Another
// allocator in its place goes on as it does.
// Threads: any.
bool keep_freed_memory();

}  // namespace shoal
