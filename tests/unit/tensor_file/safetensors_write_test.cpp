// Written .safetensors files: their bytes, they read back, and what no file can hold. unit.npy and
// unit.staged_file have what is left behind when a file cannot be written.
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support.hpp"
#include "support/write_tensor_files.hpp"
#include "tensor_file/tensor.hpp"

namespace samebits::tensor_file::testing {
namespace {

using texts = std::vector<std::pair<std::string, std::string>>;

TEST(SafetensorsWrite, WritesTheBytesOfTheFormat) {
  const scratch_folder folder;
  const std::array tensors = {named_tensor{"s", dtype::f32, {1, 1}, bytes_of("abcd")},
                              named_tensor{"c", dtype::f8_e4m3, {1, 3}, bytes_of("xyz")}};
  write_safetensors(folder.path("o"), tensors, texts{{"k", "v"}});
  std::string header =
      R"({"__metadata__":{"k":"v"},"s":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},)"
      R"("c":{"dtype":"F8_E4M3","shape":[1,3],"data_offsets":[4,7]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(content_of(folder.path("o")), safetensors_of(header, "abcdxyz"));
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(SafetensorsWrite, ReadsBackWhatItWrote) {
  const scratch_folder folder;
  const std::vector<std::uint64_t> empty_shape = {0, 7};
  const std::array tensors = {
      named_tensor{"a \"quoted\" \n name, \xC3\xA9", dtype::f64, {}, bytes_of("01234567")},
      named_tensor{"", dtype::bf16, {2, 1, 2}, bytes_of("ABCDEFGH")},
      named_tensor{"none", dtype::f32, empty_shape, {}},
      named_tensor{"packed", dtype::f4, {4}, bytes_of("12")}};
  const texts metadata = {{"a", ""}, {"b", "\xE2\x82\xAC \\ \t"}};
  write_safetensors(folder.path("o"), tensors, metadata);
  const tensor_file file = tensor_file::open(folder.path("o"));
  EXPECT_EQ(file.metadata(), metadata);
  for (const named_tensor& t : tensors) {
    const tensor_info& info = file.find(t.name);
    EXPECT_EQ(info.type, t.type);
    EXPECT_EQ(info.shape, t.shape);
    const auto bytes = file.bytes(info);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), t.data.begin(), t.data.end()));
  }
  write_safetensors(folder.path("o"), {});
  EXPECT_TRUE(tensor_file::open(folder.path("o")).tensors().empty());
}

TEST(SafetensorsWrite, RefusesWhatNoFileCanHold) {
  const scratch_folder folder;
  const auto refused = [&](const std::vector<named_tensor>& tensors, const texts& metadata = {}) {
    EXPECT_THROW(write_safetensors(folder.path("o"), tensors, metadata), std::invalid_argument);
    EXPECT_EQ(folder.entries(), 0u);
  };
  const named_tensor good = {"a", dtype::u8, {2}, bytes_of("ab")};
  refused({good, good});
  refused({{"a", dtype::u8, {3}, bytes_of("ab")}});
  refused({{"a", dtype::u8, {1}, bytes_of("ab")}});
  refused({{"a", dtype::c128, {0}, {}}});
  refused({{"a", dtype::u8, {1ull << 63, 4}, bytes_of("ab")}});
  refused({{"__metadata__", dtype::u8, {2}, bytes_of("ab")}});
  refused({{"\xFF", dtype::u8, {2}, bytes_of("ab")}});
  refused({{std::string(1, '\0'), dtype::u8, {2}, bytes_of("ab")}});
  refused({good}, {{"k", "\xC3"}});
}

}  // namespace
}  // namespace samebits::tensor_file::testing
