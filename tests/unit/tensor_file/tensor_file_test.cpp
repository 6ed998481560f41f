// tensor_file: files on disk, opened, told apart and read.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "numpy_files.hpp"
#include "support.hpp"
#include "support/write_tensor_files.hpp"
#include "tensor_file/tensor.hpp"

namespace samebits::tensor_file::testing {
namespace {

using namespace std::string_view_literals;

const std::string two_tensors = safetensors_of(
    R"({"weight":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
    R"("bias":{"dtype":"U8","shape":[3],"data_offsets":[4,7]},"__metadata__":{"k":"v"}} )",
    "abcdefg");

void refuse(const std::filesystem::path& path, std::string_view text, error_kind kind) {
  expect_refused([&] { tensor_file::open(path); }, kind, text);
}

TEST(TensorFile, OpensNpy) {
  const scratch_folder folder;
  for (const numpy_file& sample : numpy_files()) {
    SCOPED_TRACE(sample.label);
    const tensor_file file = tensor_file::open(folder.write("a.npy", sample.file));
    EXPECT_EQ(file.format(), file_format::npy);
    EXPECT_TRUE(file.metadata().empty());
    ASSERT_EQ(file.tensors().size(), 1u);
    const tensor_info& info = file.find("");
    EXPECT_EQ(info, parse_npy(bytes_of(sample.file)));
    EXPECT_EQ(codes_of(file, info), sample.codes);
  }
}

TEST(TensorFile, OpensSafetensors) {
  const scratch_folder folder;
  const tensor_file file = tensor_file::open(folder.write("m.safetensors", two_tensors));
  EXPECT_EQ(file.format(), file_format::safetensors);
  ASSERT_EQ(file.metadata().size(), 1u);
  EXPECT_EQ(file.metadata()[0].second, "v");
  ASSERT_EQ(file.tensors().size(), 2u);
  const tensor_info& bias = file.find("bias");
  EXPECT_EQ(bias.type, dtype::u8);
  const std::span<const std::byte> data = file.bytes(bias);
  EXPECT_EQ(std::memcmp(data.data(), "efg", data.size()), 0);
  EXPECT_EQ(data.size(), 3u);
}

TEST(TensorFile, OpensDescriptors) {
  const scratch_folder folder;
  const std::string npy(numpy_files()[0].file);
  const int regular = ::open(folder.write("a", npy).c_str(), O_RDONLY);
  int pipe[2] = {};
  ASSERT_EQ(::pipe(pipe), 0);
  ASSERT_EQ(::write(pipe[1], npy.data(), npy.size()), static_cast<::ssize_t>(npy.size()));
  ASSERT_EQ(::close(pipe[1]), 0);
  for (const int descriptor : {regular, pipe[0]}) {
    tensor_file opened = tensor_file::open(descriptor, "input");
    const tensor_file file = std::move(opened);
    EXPECT_EQ(::close(descriptor), 0);
    EXPECT_EQ(codes_of(file, file.tensors().at(0)), numpy_files()[0].codes);
  }
  const int empty = ::open("/dev/null", O_RDONLY);
  expect_refused([&] { tensor_file::open(empty, "input"); }, error_kind::unsupported,
                 "input: the file is empty");
  EXPECT_EQ(::close(empty), 0);
  expect_refused([&] { tensor_file::open(empty, "input"); }, error_kind::unreadable,
                 "input: cannot be examined");
}

TEST(TensorFile, StaysUsableWhenMoved) {
  const scratch_folder folder;
  tensor_file first = tensor_file::open(folder.write("m.safetensors", two_tensors));
  tensor_file second = std::move(first);
  first = tensor_file::open(folder.write("n.safetensors", safetensors_of("{}", "")));
  char byte = 0;
  second.read_codes(second.find("bias"), 2, 1, reinterpret_cast<std::byte*>(&byte));
  EXPECT_EQ(byte, 'g');
  EXPECT_TRUE(first.tensors().empty());
}

// What is mapped is the file that was opened, not what later takes its name.
TEST(TensorFile, OutlivesItsName) {
  const scratch_folder folder;
  const std::filesystem::path path = folder.path("a.npy");
  const std::vector<std::uint64_t> shape{4};
  write_npy(path, dtype::u8, shape, bytes_of("abcd"));
  const tensor_file file = tensor_file::open(path);
  write_npy(path, dtype::u8, shape, bytes_of("wxyz"));
  EXPECT_EQ(codes_of(file, file.tensors()[0]), "abcd");
}

TEST(TensorFile, ContentGoesBeforeTheName) {
  const scratch_folder folder;
  EXPECT_EQ(tensor_file::open(folder.write("a.npy", two_tensors)).format(),
            file_format::safetensors);
  EXPECT_EQ(tensor_file::open(folder.write("a.safetensors", numpy_files()[0].file)).format(),
            file_format::npy);
  EXPECT_EQ(tensor_file::open(folder.write("blob", two_tensors)).format(),
            file_format::safetensors);
  refuse(folder.write("blob", little_endian(1, 8) + "{"), "byte 8: the header must end in '}'",
         error_kind::malformed);
  // A header of 640 bytes begins like a pickle: 80 02.
  std::string header = "{}";
  header.append(640 - header.size(), ' ');
  EXPECT_EQ(tensor_file::open(folder.write("a.pt", safetensors_of(header, ""))).format(),
            file_format::safetensors);
}

// A zip archive whose first member has that name.
std::string zip_of(std::string_view member) {
  return "PK\x03\x04" + std::string(22, '\0') + little_endian(member.size(), 2) +
         std::string(2, '\0') + std::string(member) + "rest";
}

TEST(TensorFile, TheNameDecidesWhoReportsTheDamage) {
  const scratch_folder folder;
  const auto damaged = [&](const char* name, std::string_view content, std::string_view text) {
    refuse(folder.write(name, content), text, error_kind::malformed);
  };
  damaged("a.npy", "not it", "a.npy: byte 0: a .npy file begins with");
  damaged("a.NPY", "", "a.NPY: byte 0: a .npy file begins with");
  damaged("arrays", zip_of("a.npy"), "does not end with the directory of a zip");
  damaged("arrays.npz", "PK\x05\x06", "the file ends before the directory of a zip");
  damaged("arrays.NPZ", zip_of("notes.txt"), "does not end with the directory");
  damaged("arrays.npz", "not it", "the file ends before the directory of a zip");
  damaged("x", "GGUF\3\0\0\0"sv, "the file ends before the end of the number of");
  damaged("a.safetensors", "", "a.safetensors: byte 0: the file has 0 bytes");
  damaged("b.safetensors", "\x80\x02\0\0\0\0\0\0x"sv, "byte 0: a header of 640 bytes");
  for (const char* const name : {"model.pt", "model.PTH", "model.ckpt"}) {
    refuse(folder.write(name, "anything"), "no PyTorch file", error_kind::unsupported);
  }
  // Archives of PyTorch, told by the first member or by the name.
  for (const char* const name : {"model", "model.bin", "model.safetensors", "a.npz"}) {
    damaged(name, zip_of("archive/data.pkl"), "does not end with the directory of a zip");
  }
  for (const char* const name : {"model.pt", "model.PTH", "model.ckpt", "model.bin", "model.jit"}) {
    damaged(name, zip_of("archive/x"), "does not end with the directory of a zip");
  }
  damaged("x", "\x80\x02\x8a\nl\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19",
          "the file ends before the end of the pickle");
  refuse(folder.write("blob", "not it"), "blob: no .npy, .npz, .safetensors, GGUF or PyTorch file",
         error_kind::unsupported);
  refuse(folder.write("empty", ""), "empty: the file is empty", error_kind::unsupported);
}

TEST(TensorFile, OtherFormatsAreRefusedWithAHint) {
  const scratch_folder folder;
  const auto hint = [&](const char* name, std::string_view content, std::string_view text) {
    refuse(folder.write(name, content), text, error_kind::unsupported);
  };
  hint("model.bin", "\x80\x02\x8a\nl\xfc\x9c", "a pickle");
  hint("model.bin", "anything", "no .npy, .npz, .safetensors, GGUF or PyTorch file");
  hint("model.bin", "", "the file is empty");
  hint("things", "PK\x05\x06", "a zip archive");
  hint("things", "PK\x03\x04", "a zip archive");
  hint("x", "\x80\x02\x8a\nl\xfc\x9c", "a pickle");
  hint("x", "\x80\x04\x95", "a pickle");
  hint("x.pkl", "(lp0", "a pickle");
  hint("x", "\x89HDF\r\n\x1a\n", "an HDF5 file");
  hint("x.h5", "", "an HDF5 file");
  hint("a.npy.gz", "\x1f\x8b\x08", "compressed with gzip");
  hint("m", "version https://git-lfs.github.com/spec/v1\n", "git lfs pull");
  hint("model.safetensors.index.json", R"({"metadata":{}})", "several parts");
}

TEST(TensorFile, GitLfsPointersAreNamedWhateverTheName) {
  const scratch_folder folder;
  for (const char* const name : {"m.safetensors", "m.npy"}) {
    refuse(folder.write(name, "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
           "git lfs pull", error_kind::unsupported);
  }
}

TEST(TensorFile, MissingFilesAndWhatIsNoFile) {
  const scratch_folder folder;
  refuse(folder.path("none.npy"), "none.npy: cannot be opened: No such file", error_kind::missing);
  refuse(folder.write("file", "x") / "none.npy", "cannot be opened", error_kind::missing);
  refuse("", ": cannot be opened", error_kind::missing);
  refuse(folder.path(""), "is a directory", error_kind::unreadable);
  ASSERT_EQ(::mkfifo(folder.path("a.npy").c_str(), 0600), 0);
  refuse(folder.path("a.npy"), "a.npy: is not a regular file", error_kind::unreadable);
  refuse("/dev/null", "/dev/null: is not a regular file", error_kind::unreadable);
}

// In a child that gives up root, for whom every file can be opened.
TEST(TensorFile, FileThatMayNotBeRead) {
  const scratch_folder folder;
  const std::filesystem::path path = folder.write("a.npy", numpy_files()[0].file);
  ASSERT_EQ(::chmod(folder.path("").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  const ::pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr ::uid_t nobody = 65534;
    if (::getuid() == 0 && ::setuid(nobody) != 0) ::_exit(2);
    try {
      tensor_file::open(path);
    } catch (const file_error& error) {
      const bool denied =
          std::strstr(error.what(), "a.npy: cannot be opened: Permission") != nullptr;
      ::_exit(error.kind() == error_kind::unreadable && denied ? 0 : 3);
    }
    ::_exit(4);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(TensorFile, PathsAreEscapedInMessages) {
  const scratch_folder folder;
  refuse(folder.path("a\nb\xff.npy"), "a\\x0ab\\xff.npy: cannot be opened", error_kind::missing);
}

TEST(TensorFile, NoSuchTensor) {
  const scratch_folder folder;
  const tensor_file file = tensor_file::open(folder.write("m.safetensors", two_tensors));
  expect_refused([&] { static_cast<void>(file.find("weigth\n")); }, error_kind::no_such_tensor,
                 "m.safetensors: no tensor \"weigth\\x0a\"; it has 2: \"weight\", \"bias\"");
  const tensor_file none =
      tensor_file::open(folder.write("n.safetensors", safetensors_of("{}", "")));
  expect_refused([&] { static_cast<void>(none.find("x")); }, error_kind::no_such_tensor,
                 "no tensor \"x\"; it has 0");
}

TEST(TensorFile, NoSuchTensorListsOnlyTheFirst) {
  const scratch_folder folder;
  std::string header = "{";
  for (char c = 'a'; c <= 'z'; ++c) {
    header += std::string("\"") + c + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";
  }
  header.back() = '}';
  const tensor_file file =
      tensor_file::open(folder.write("m.safetensors", safetensors_of(header, "")));
  expect_refused([&] { static_cast<void>(file.find("0")); }, error_kind::no_such_tensor,
                 "it has 26: \"a\", \"b\"");
  expect_refused([&] { static_cast<void>(file.find("0")); }, error_kind::no_such_tensor,
                 "\"h\", ...");
}

}  // namespace
}  // namespace samebits::tensor_file::testing
