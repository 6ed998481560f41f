// Written .npy files: their bytes, and what it leaves behind when it cannot.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "numpy_files.hpp"
#include "support.hpp"
#include "support/write_tensor_files.hpp"

namespace samebits::tensor_file::testing {
namespace {

const std::vector<std::uint64_t> three{3};

// Version 1.0 in C order, little endian, is what is written; NumPy writes the very same bytes.
TEST(NpyWrite, WritesTheBytesThatNumPyWrites) {
  const scratch_folder folder;
  int compared = 0;
  for (const numpy_file& sample : numpy_files()) {
    SCOPED_TRACE(sample.label);
    const bool version1 = sample.file[6] == 1;
    if (!version1 || sample.bytes_order == byte_order::big ||
        sample.order == element_order::fortran) {
      continue;
    }
    const std::filesystem::path path = folder.path("out.npy");
    write_npy(path, sample.type, sample.shape, bytes_of(sample.codes));
    EXPECT_EQ(content_of(path), sample.file);
    ++compared;
  }
  EXPECT_GE(compared, 16);
}

TEST(NpyWrite, HeaderFillsUpTo64Bytes) {
  const scratch_folder folder;
  std::vector<std::uint64_t> shape;
  for (std::size_t rank = 0; rank <= max_rank; ++rank) {
    write_npy(folder.path("out.npy"), dtype::f32, shape, bytes_of("abcd"));
    const std::string file = content_of(folder.path("out.npy"));
    const tensor_info info = parse_npy(bytes_of(file));
    EXPECT_EQ(info.offset % 64, 0u);
    EXPECT_EQ(info.shape, shape);
    EXPECT_EQ(file[info.offset - 1], '\n');
    shape.push_back(1);
  }
}

TEST(NpyWrite, ReplacesAFileAndLeavesNothingElse) {
  const scratch_folder folder;
  const std::filesystem::path path = folder.write("out.npy", "something else");
  write_npy(path, dtype::u16, three, bytes_of("abcdef"));
  EXPECT_EQ(parse_npy(bytes_of(content_of(path))).type, dtype::u16);
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(NpyWrite, GivesTheFileTheUsualRights) {
  const scratch_folder folder;
  const ::mode_t before = ::umask(027);
  write_npy(folder.path("out.npy"), dtype::u16, three, bytes_of("abcdef"));
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(folder.path("out.npy").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

// A name as long as a name may be: the file beside it must not need a longer one.
TEST(NpyWrite, WritesToTheLongestName) {
  const scratch_folder folder;
  std::string name(251, 'n');
  name += ".npy";
  write_npy(folder.path(name), dtype::u16, three, bytes_of("abcdef"));
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(NpyWrite, WritesToThePlainNameInTheWorkingFolder) {
  const scratch_folder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path(""));
  write_npy("out.npy", dtype::u16, three, bytes_of("abcdef"));
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::exists(folder.path("out.npy")));
  EXPECT_EQ(folder.entries(), 1u);
}

void expect_unwritable(const std::filesystem::path& path, std::string_view text) {
  expect_refused([&] { write_npy(path, dtype::u16, three, bytes_of("abcdef")); },
                 error_kind::unwritable, text);
}

TEST(NpyWrite, FailsWithoutAFolderAndOnWhatIsNoFile) {
  const scratch_folder folder;
  expect_unwritable(folder.path("missing") / "out.npy",
                    "missing/out.npy: cannot create a file in its folder: No such file");
  EXPECT_EQ(folder.entries(), 0u);
  std::filesystem::create_directory(folder.path("out.npy"));
  expect_unwritable(folder.path("out.npy"), "out.npy: is a directory");
  EXPECT_TRUE(std::filesystem::is_directory(folder.path("out.npy")));
  ASSERT_EQ(::mkfifo(folder.path("fifo").c_str(), 0600), 0);
  expect_unwritable(folder.path("fifo"), "fifo: is not a regular file");
  EXPECT_TRUE(std::filesystem::is_fifo(folder.path("fifo")));
  EXPECT_EQ(folder.entries(), 2u);
}

// The size limit of the process stands for a full disk: the write fails halfway.
TEST(NpyWrite, LeavesTheOldFileWhenTheDiskIsFull) {
  const scratch_folder folder;
  const std::filesystem::path path = folder.write("out.npy", "the old content");
  const std::string data(100'000, 'x');
  const std::vector<std::uint64_t> shape{data.size()};

  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 50'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    write_npy(path, dtype::u8, shape, bytes_of(data));
  } catch (const file_error& error) {
    message = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  static_cast<void>(std::signal(SIGXFSZ, handler));

  EXPECT_NE(message.find("out.npy: cannot be written: File too large"), std::string::npos)
      << message;
  EXPECT_EQ(content_of(path), "the old content");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(NpyWrite, RefusesBadArgumentsBeforeItTouchesTheDisk) {
  const scratch_folder folder;
  const std::filesystem::path path = folder.path("out.npy");
  EXPECT_THROW(write_npy(path, dtype::bf16, three, bytes_of("abcdef")), std::invalid_argument);
  EXPECT_THROW(write_npy(path, dtype::f4, three, bytes_of("abc")), std::invalid_argument);
  EXPECT_THROW(write_npy(path, dtype::u16, three, bytes_of("abcde")), std::invalid_argument);
  EXPECT_THROW(write_npy(path, dtype::u16, three, bytes_of("abcdefg")), std::invalid_argument);
  const std::vector<std::uint64_t> deep(max_rank + 1, 1);
  EXPECT_THROW(write_npy(path, dtype::u8, deep, bytes_of("x")), std::invalid_argument);
  const std::vector<std::uint64_t> huge{1ull << 63, 2};
  EXPECT_THROW(write_npy(path, dtype::u8, huge, bytes_of("")), std::invalid_argument);
  EXPECT_EQ(folder.entries(), 0u);
}

}  // namespace
}  // namespace samebits::tensor_file::testing
