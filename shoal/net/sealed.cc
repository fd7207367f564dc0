#include "shoal/net/sealed.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shoal::net {

Descriptor sealed_file(const char* name, std::size_t bytes) {
  Descriptor file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return {};
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return {};
  return file;
}

SealedMapping::SealedMapping(int file, std::size_t bytes, Access access) : bytes_(bytes) {
  if (file < 0) return;  // errno still says why there is none
  struct stat about {};
  if (fstat(file, &about) != 0 || about.st_size != static_cast<off_t>(bytes)) return;
  const int seals = fcntl(file, F_GET_SEALS);  // -1 of what cannot be sealed
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return;
  const int protection = access == Access::write ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const at = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (at != MAP_FAILED) at_ = static_cast<std::byte*>(at);
}

SealedMapping::~SealedMapping() {
  if (at_) munmap(at_, bytes_);
}

void SealedMapping::keep_from_children() const {
  if (at_) madvise(at_, bytes_, MADV_DONTFORK);
}

void SealedMapping::keep_from_core_files() const {
  if (at_) madvise(at_, bytes_, MADV_DONTDUMP);
}

}  // namespace shoal::net
