// staged_file: the permissions of what it replaces, and the order in which data and name reach the
// disk.
#include "tensor_file/files/staged_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "support.hpp"

namespace {

// What was asked of the kernel, in order; `failing` is the step to refuse.
std::vector<std::string> steps;
std::string failing;
int refusal = EIO;

int step(const char* name) {
  steps.emplace_back(name);
  if (failing != name) return 0;
  errno = refusal;
  return -1;
}

}  // namespace

// The program's own definitions take the place of the C library's in every file linked to it.
extern "C" int fsync(int number) {
  struct stat status {};
  EXPECT_EQ(::fstat(number, &status), 0);
  if (step(S_ISDIR(status.st_mode) ? "fsync folder" : "fsync file") != 0) return -1;
  return static_cast<int>(::syscall(SYS_fsync, number));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  if (step("rename") != 0) return -1;
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace samebits::tensor_file::testing {
namespace {

class StagedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    steps.clear();
    failing.clear();
    refusal = EIO;
  }

  void write() const {
    staged_file file(path());
    file.write(bytes_of("new"));
    file.commit();
  }
  [[nodiscard]] std::filesystem::path path() const { return folder_.path("out"); }
  [[nodiscard]] ::mode_t mode() const {
    struct stat status {};
    EXPECT_EQ(::stat(path().c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  scratch_folder folder_;
};

TEST_F(StagedFile, KeepsThePermissionsOfTheFileItReplaces) {
  for (const ::mode_t rights : {0600u, 0640u, 0400u, 0777u, 0664u}) {
    folder_.write("out", "old");
    ASSERT_EQ(::chmod(path().c_str(), rights), 0);
    const ::mode_t before = ::umask(077);  // must not matter
    write();
    ::umask(before);
    EXPECT_EQ(mode(), rights);
    EXPECT_EQ(content_of(path()), "new");
    std::filesystem::remove(path());
  }
}

// At no moment may a private file's successor be read by others.
TEST_F(StagedFile, IsAsPrivateAsItsTargetWhileItIsWritten) {
  folder_.write("out", "old");
  ASSERT_EQ(::chmod(path().c_str(), 0600), 0);
  staged_file file(path());
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path(""))) {
    struct stat status {};
    ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u) << entry.path();
  }
}

TEST_F(StagedFile, SynchronizesTheFileThenRenamesThenSynchronizesTheFolder) {
  write();
  EXPECT_EQ(steps, (std::vector<std::string>{"fsync file", "rename", "fsync folder"}));
}

TEST_F(StagedFile, SynchronizesTheWorkingFolderForAPlainName) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path(""));
  staged_file file("out");
  file.commit();
  std::filesystem::current_path(before);
  EXPECT_EQ(steps.back(), "fsync folder");
}

TEST_F(StagedFile, LeavesTheOldFileWhereTheDataCannotBeSynchronized) {
  folder_.write("out", "old");
  failing = "fsync file";
  expect_refused([&] { write(); }, error_kind::unwritable, "cannot be written: ");
  EXPECT_EQ(content_of(path()), "old");
  EXPECT_EQ(folder_.entries(), 1u);
}

TEST_F(StagedFile, SaysThatTheFileIsInPlaceWhereTheFolderCannotBeSynchronized) {
  failing = "fsync folder";
  expect_refused([&] { write(); }, error_kind::unwritable, "is in place, but its folder");
  EXPECT_EQ(content_of(path()), "new");
}

TEST_F(StagedFile, TakesAFileSystemThatCannotSynchronize) {
  for (const char* what : {"fsync file", "fsync folder"}) {
    failing = what;
    refusal = EINVAL;
    write();
    EXPECT_EQ(content_of(path()), "new");
  }
}

}  // namespace
}  // namespace samebits::tensor_file::testing
