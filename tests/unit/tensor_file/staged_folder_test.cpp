// staged_folder: appears completely or not at all, and replaces in one step.
#include "tensor_file/files/staged_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "support.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/files/staged_file.hpp"

namespace samebits::tensor_file::testing {
namespace {

namespace fs = std::filesystem;

class StagedFolder : public ::testing::Test {
 protected:
  static void write(const fs::path& path, const char* text) { std::ofstream(path) << text; }

  static std::set<std::string> names_in(const fs::path& folder) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
    return names;
  }

  scratch_folder folder_;
  const fs::path root_ = folder_.path("").parent_path();
};

using names = std::set<std::string>;

TEST_F(StagedFolder, AppearsOnCommit) {
  {
    staged_folder folder(root_ / "out");
    write(folder.path() / "a", "1");
    EXPECT_EQ(folder.path().parent_path(), root_);
    EXPECT_FALSE(fs::exists(root_ / "out"));
    folder.commit();
    EXPECT_EQ(names_in(root_), names{"out"});
  }
  EXPECT_EQ(names_in(root_ / "out"), names{"a"});
}

TEST_F(StagedFolder, IsRemovedWithoutCommit) {
  {
    staged_folder folder(root_ / "out");
    write(folder.path() / "a", "1");
  }
  EXPECT_EQ(names_in(root_), names{});
}

TEST_F(StagedFolder, ReplacesAFolderAndKeepsItsPermissions) {
  fs::create_directory(root_ / "out");
  write(root_ / "out" / "old", "1");
  fs::permissions(root_ / "out", fs::perms::owner_all);
  {
    staged_folder folder(root_ / "out" / "");
    write(folder.path() / "new", "1");
    EXPECT_EQ(names_in(root_ / "out"), names{"old"});
    folder.commit();
    EXPECT_EQ(names_in(root_ / "out"), names{"new"});
  }
  EXPECT_EQ(names_in(root_), names{"out"});
  EXPECT_EQ(fs::status(root_ / "out").permissions(), fs::perms::owner_all);
}

TEST_F(StagedFolder, ReplacesWhatAppearedMeanwhile) {
  staged_folder folder(root_ / "out");
  write(root_ / "out", "a file");
  folder.commit();
  EXPECT_EQ(names_in(root_ / "out"), names{});
}

TEST_F(StagedFolder, FollowsALink) {
  fs::create_directory(root_ / "real");
  fs::create_directory_symlink(root_ / "real", root_ / "link");
  {
    staged_folder folder(root_ / "link");
    write(folder.path() / "a", "1");
    folder.commit();
  }
  EXPECT_TRUE(fs::is_symlink(root_ / "link"));
  EXPECT_EQ(names_in(root_ / "real"), names{"a"});
}

TEST_F(StagedFolder, NeedsAFolderAround) {
  try {
    staged_folder folder(root_ / "none" / "out");
    FAIL();
  } catch (const file_error& error) {
    EXPECT_EQ(error.kind(), error_kind::unwritable);
    EXPECT_EQ(std::string(error.what()),
              "cannot create a folder beside it: No such file or directory");
  }
}

TEST_F(StagedFolder, ASignalHandlerRemovesIt) {
  staged_folder folder(root_ / "out");
  for (int i = 0; i < 500; ++i) {  // more names than one call of the kernel returns
    write(folder.path() / (std::to_string(i) + std::string(60, 'x')), "1");
  }
  remove_unfinished_file();
  EXPECT_EQ(names_in(root_), names{});
}

}  // namespace
}  // namespace samebits::tensor_file::testing
