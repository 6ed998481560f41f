// An output folder of files that appears completely or not at all: implementation.
#include "tensor_file/files/staged_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>

#include "tensor_file/files/descriptor.hpp"

namespace samebits::tensor_file {
namespace {

// The folder that is being written, for a signal handler; null if there is none.
std::atomic<const char*> unfinished_folder = nullptr;

// The folder behind a symbolic link, without the separator that may end its name.
std::filesystem::path plain_target(const std::filesystem::path& target) {
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(target, failed);
  const std::filesystem::path named = failed ? target : whole;
  return named.has_filename() ? named : named.parent_path();
}

void synchronize_folder(const std::filesystem::path& folder) {
  const descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.is_open()) static_cast<void>(::fsync(opened.number()));
}

// As a signal handler may do it.
void remove_files_in(const char* name) noexcept {
  const int folder = ::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(std::uint64_t) std::array<char, 4096> entries;
  constexpr std::size_t length_at = 16;  // of struct linux_dirent64
  constexpr std::size_t name_at = 19;
  for (long size = 0;
       (size = ::syscall(SYS_getdents64, folder, entries.data(), entries.size())) > 0;) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      std::uint16_t length = 0;
      std::memcpy(&length, entries.data() + at + length_at, sizeof length);
      ::unlinkat(folder, entries.data() + at + name_at, 0);  // refuses "." and ".."
      at += length;
    }
  }
  ::close(folder);
}

}  // namespace

std::string staged_name() {
  static std::atomic<unsigned> number = 0;
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const auto mark = static_cast<std::uint64_t>(now) ^ static_cast<std::uint64_t>(::getpid()) << 40;
  return cat(".samebits-", mark, "-", number++, ".tmp");
}

staged_folder::staged_folder(std::filesystem::path target) : target_(plain_target(target)) {
  constexpr int attempts = 100;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    staged_ = target_.parent_path() / staged_name();
    // Before the folder exists: a signal may come between the two.
    unfinished_folder = staged_.c_str();
    if (::mkdir(staged_.c_str(), 0777) == 0) return;
    unfinished_folder = nullptr;
    if (errno != EEXIST) break;
  }
  cannot_write("cannot create a folder beside it", errno);
}

staged_folder::~staged_folder() {
  if (staged_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(staged_, ignored);
  unfinished_folder = nullptr;
}

void staged_folder::commit() {
  synchronize_folder(staged_);
  struct stat old {};
  const bool exists = ::stat(target_.c_str(), &old) == 0;
  if (exists) static_cast<void>(::chmod(staged_.c_str(), old.st_mode & 07777));
  const unsigned how = exists ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  if (::renameat2(AT_FDCWD, staged_.c_str(), AT_FDCWD, target_.c_str(), how) != 0) {
    cannot_write("cannot be replaced", errno);
  }
  synchronize_folder(target_.parent_path());
  if (exists) return;  // the destructor removes the old folder
  unfinished_folder = nullptr;
  staged_.clear();
}

// readdir() may allocate memory, which a signal handler must not do. Other threads run on and may
// create a file in the folder meanwhile, hence the attempts.
void remove_unfinished_folder() noexcept {
  const char* const name = unfinished_folder;
  if (name == nullptr) return;
  constexpr int attempts = 100;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    remove_files_in(name);
    if (::rmdir(name) == 0 || (errno != ENOTEMPTY && errno != EEXIST)) return;
  }
}

}  // namespace samebits::tensor_file
