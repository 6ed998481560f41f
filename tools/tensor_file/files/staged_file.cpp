// An output file that appears completely or not at all: implementation.
#include "tensor_file/files/staged_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "tensor_file/files/staged_folder.hpp"

namespace samebits::tensor_file {
namespace {

// The name of the file that is being written, for a signal handler; null if there is none.
std::atomic<const char*> unfinished = nullptr;
static_assert(std::atomic<const char*>::is_always_lock_free);

// Returns the file behind a chain of symbolic links, which may not exist yet. Renaming to the link
// would replace the link.
std::filesystem::path behind_links(std::filesystem::path target) {
  constexpr int most = 40;  // as on Linux
  for (int links = 0; links < most; ++links) {
    std::error_code not_a_link;
    const std::filesystem::path next = std::filesystem::read_symlink(target, not_a_link);
    if (not_a_link) return target;
    target = target.parent_path() / next;
  }
  cannot_write("cannot be followed", ELOOP);
}

// Returns the permissions of the existing file, or nothing if there is none. Refuses a device or a
// FIFO, which renaming would replace by a file.
std::optional<::mode_t> mode_of_replaceable(const std::filesystem::path& target) {
  struct stat status {};
  if (::stat(target.c_str(), &status) != 0) return std::nullopt;
  if (S_ISDIR(status.st_mode)) throw file_error(error_kind::unwritable, "is a directory");
  if (!S_ISREG(status.st_mode)) throw file_error(error_kind::unwritable, "is not a regular file");
  return status.st_mode & 07777;
}

// Creates a file next to the target; returns the descriptor and stores the name. O_EXCL ensures
// that the file is new. A user who may not read the target can never read the new file either.
int create_beside(const std::filesystem::path& target, std::filesystem::path& staged) {
  const std::optional<::mode_t> mode = mode_of_replaceable(target);
  constexpr int attempts = 100;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    staged = target.parent_path() / staged_name();
    unfinished = staged.c_str();
    const int number =
        ::open(staged.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode ? 0600 : 0666);
    if (number >= 0) {
      if (!mode || ::fchmod(number, *mode) == 0) return number;
      const int code = errno;
      ::close(number);
      ::unlink(staged.c_str());
      unfinished = nullptr;
      cannot_write("cannot get the permissions of the file it replaces", code);
    }
    unfinished = nullptr;
    if (errno != EEXIST) break;
  }
  cannot_write("cannot create a file in its folder", errno);
}

// Some file systems, such as network file systems, do not support fsync for every kind of file.
bool synchronize(int number) {
  if (::fsync(number) == 0) return true;
  return errno == EINVAL || errno == ENOTSUP;
}

}  // namespace

staged_file::staged_file(std::filesystem::path target)
    : target_(behind_links(std::move(target))), file_(create_beside(target_, staged_)) {}

staged_file::~staged_file() {
  if (staged_.empty()) return;
  ::unlink(staged_.c_str());
  unfinished = nullptr;
}

void remove_unfinished_file() noexcept {
  if (const char* name = unfinished) ::unlink(name);
  remove_unfinished_folder();
}

void staged_file::write(std::span<const std::byte> bytes) {
  write_at(position_, bytes);
  position_ += bytes.size();
}

void staged_file::write_at(std::uint64_t position, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ::ssize_t written =
        ::pwrite(file_.number(), bytes.data(), bytes.size(), static_cast<::off_t>(position));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write("cannot be written", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    position += static_cast<std::uint64_t>(written);
  }
}

void staged_file::commit() {
  // First the data, then the name: after a power failure the target is either the old or the new
  // file.
  if (!synchronize(file_.number())) cannot_write("cannot be written", errno);
  if (!file_.close()) cannot_write("cannot be written", errno);
  if (::rename(staged_.c_str(), target_.c_str()) != 0) cannot_write("cannot be replaced", errno);
  unfinished = nullptr;
  staged_.clear();
  const std::filesystem::path parent = target_.parent_path();
  const descriptor folder(
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A folder that is writable but not readable cannot be opened; it then stays unsynchronized.
  if (folder.is_open() && !synchronize(folder.number())) {
    cannot_write("is in place, but its folder cannot be synchronized", errno);
  }
}

}  // namespace samebits::tensor_file
