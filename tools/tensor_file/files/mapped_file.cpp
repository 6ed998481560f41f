// A regular file, mapped read-only: implementation.
#include "tensor_file/files/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "tensor_file/files/descriptor.hpp"

namespace samebits::tensor_file {
namespace {

[[noreturn]] void cannot(const char* what, int code) {
  const bool missing = code == ENOENT || code == ENOTDIR;
  throw file_error(missing ? error_kind::missing : error_kind::unreadable,
                   std::string(what) + ": " + errno_text(code));
}

/// A mapped_file in a list that a signal handler can walk: entries are added, but never removed.
struct mapping {
  const std::string shown;
  const std::uintptr_t size;
  std::atomic<std::uintptr_t> start;  // 0: no longer mapped
  mapping* next;
};

std::atomic<mapping*> mappings = nullptr;

void add_mapping(std::string shown, const void* start, std::size_t size) {
  auto* added =
      new mapping{std::move(shown), size, reinterpret_cast<std::uintptr_t>(start), mappings.load()};
  while (!mappings.compare_exchange_weak(added->next, added)) {
  }
}

/// Reads to the end of the file.
std::vector<std::byte> read_whole(int descriptor) {
  constexpr std::size_t least = 1 << 16;
  std::vector<std::byte> bytes;
  std::size_t filled = 0;
  for (;;) {
    if (filled == bytes.size()) bytes.resize(std::max(least, 2 * filled));
    const ::ssize_t got = ::read(descriptor, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cannot("cannot be read", errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace

mapped_file::mapped_file(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer. It has no effect on regular files.
  descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) cannot("cannot be opened", errno);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) cannot("cannot be examined", errno);
  if (S_ISDIR(status.st_mode)) throw file_error(error_kind::unreadable, "is a directory");
  if (!S_ISREG(status.st_mode)) throw file_error(error_kind::unreadable, "is not a regular file");

  map(file.number(), static_cast<std::size_t>(status.st_size), escape_path(path));
}

mapped_file::mapped_file(int descriptor, std::string shown) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) cannot("cannot be examined", errno);
  if (S_ISDIR(status.st_mode)) throw file_error(error_kind::unreadable, "is a directory");
  if (S_ISREG(status.st_mode)) {
    map(descriptor, static_cast<std::size_t>(status.st_size), std::move(shown));
  } else {
    copy_ = read_whole(descriptor);
  }
}

void mapped_file::map(int descriptor, std::size_t size, std::string shown) {
  if (size == 0) return;  // mmap refuses an empty mapping
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (start == MAP_FAILED) cannot("cannot be mapped", errno);
  start_ = start;
  size_ = size;
  add_mapping(std::move(shown), start, size);
}

mapped_file::~mapped_file() {
  if (size_ == 0) return;
  for (mapping* m = mappings; m != nullptr; m = m->next) {
    auto start = reinterpret_cast<std::uintptr_t>(start_);
    if (m->start.compare_exchange_strong(start, 0)) break;
  }
  ::munmap(start_, size_);
}

const char* mapped_name(const void* address) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const mapping* m = mappings; m != nullptr; m = m->next) {
    const std::uintptr_t start = m->start;
    if (start != 0 && at - start < m->size) return m->shown.c_str();
  }
  return nullptr;
}

mapped_file::mapped_file(mapped_file&& other) noexcept
    : copy_(std::move(other.copy_)),
      start_(std::exchange(other.start_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

mapped_file& mapped_file::operator=(mapped_file&& other) noexcept {
  std::swap(copy_, other.copy_);
  std::swap(start_, other.start_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace samebits::tensor_file
