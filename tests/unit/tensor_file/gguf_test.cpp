// parse_gguf: files that are read, and each rule that refuses one.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "support.hpp"
#include "tensor_file/codes.hpp"
#include "tensor_file/gguf/gguf.hpp"
#include "tensor_file/gguf/gguf_types.hpp"
#include "tensor_file/tensor.hpp"

namespace samebits::tensor_file::testing {
namespace {

using namespace std::string_literals;

std::string text_of(std::string_view text) {
  return little_endian(text.size(), 8) + std::string(text);
}

/// A key-value pair; `value` is as in the file.
std::string pair_of(std::string_view key, unsigned type, const std::string& value) {
  return text_of(key) + little_endian(type, 4) + value;
}

/// A tensor info. The dimensions are in the order of the file, fastest first.
std::string info_of(std::string_view name, const std::vector<std::uint64_t>& dimensions,
                    unsigned type, std::uint64_t offset) {
  std::string info = text_of(name) + little_endian(dimensions.size(), 4);
  for (const std::uint64_t dimension : dimensions) info += little_endian(dimension, 8);
  return info + little_endian(type, 4) + little_endian(offset, 8);
}

struct gguf_file {
  std::uint64_t version = 3;
  std::vector<std::string> pairs = {};
  std::vector<std::string> infos = {};
  std::string data = {};
  std::size_t alignment = 32;

  [[nodiscard]] std::string text() const {
    std::string file = "GGUF" + little_endian(version, 4) + little_endian(infos.size(), 8) +
                       little_endian(pairs.size(), 8);
    for (const std::string& pair : pairs) file += pair;
    for (const std::string& info : infos) file += info;
    file.append((alignment - file.size() % alignment) % alignment, '\0');
    return file + data;
  }
};

std::vector<tensor_info> parse(const gguf_file& file) {
  return parse_gguf(bytes_of(file.text())).tensors;
}

void refuse(const gguf_file& file, std::string_view text, error_kind kind = error_kind::malformed) {
  expect_refused([&] { parse(file); }, kind, text);
}

TEST(Gguf, ReadsTensors) {
  for (const std::uint64_t version : {2u, 3u}) {
    const gguf_file file{.version = version,
                         .infos = {info_of("late", {2}, 0, 32), info_of("w", {3, 2}, 30, 0),
                                   info_of("s", {}, 28, 64)},
                         .data = "abcdefghijkl" + std::string(20, '\0') + "ABCDEFGH" +
                                 std::string(24, '\0') + "01234567"};
    const std::string text = file.text();
    const std::vector<tensor_info> tensors = parse(file);
    ASSERT_EQ(tensors.size(), 3u);
    EXPECT_EQ(tensors[0].name, "w");
    EXPECT_EQ(tensors[0].type, dtype::bf16);
    EXPECT_EQ(tensors[0].shape, (std::vector<std::uint64_t>{2, 3}));  // slowest first
    EXPECT_EQ(tensors[0].count, 6u);
    EXPECT_EQ(codes_of(text, tensors[0]), "abcdefghijkl");
    EXPECT_EQ(tensors[1].name, "late");
    EXPECT_EQ(tensors[1].type, dtype::f32);
    EXPECT_EQ(codes_of(text, tensors[1]), "ABCDEFGH");
    EXPECT_EQ(tensors[2].type, dtype::f64);
    EXPECT_TRUE(tensors[2].shape.empty());
    EXPECT_EQ(codes_of(text, tensors[2]), "01234567");
  }
}

TEST(Gguf, ReadsTheTypesOfTheTable) {
  for (const gguf_type& type : gguf_types) {
    SCOPED_TRACE(type.name);
    const gguf_file file{.infos = {info_of("t", {32, 2}, type.number, 0)},
                         .data = std::string(512, 'x')};
    const tensor_info info = parse(file).at(0);
    EXPECT_EQ(info.count, 64u);
    EXPECT_EQ(info.shape, (std::vector<std::uint64_t>{2, 32}));
    const bool blocks = type.name == "Q4_0" || type.name == "Q8_0";
    if (type.elements || blocks) {
      EXPECT_EQ(info.type, type.elements.value_or(dtype::f32));
      EXPECT_EQ(info.unread, "");
    } else {
      EXPECT_EQ(info.unread, "elements are quantized in blocks of " + std::string(type.name));
    }
  }
  const gguf_file newer{.infos = {info_of("t", {8}, 4711, 0)}, .data = "x"};
  EXPECT_EQ(parse(newer).at(0).unread, "elements are of the GGUF type 4711");
}

std::vector<float> floats_of(std::string_view file, const tensor_info& info) {
  const std::string codes = codes_of(file, info);
  std::vector<float> values(info.count);
  std::memcpy(values.data(), codes.data(), codes.size());
  EXPECT_FALSE(view_codes(bytes_of(file), info).has_value());
  return values;
}

// Each block has a scale of its own: 1.5, the smallest subnormal number, -65504.
TEST(Gguf, ReadsBlocksOfQ8_0) {
  std::string data;
  std::vector<float> expected;
  for (const auto& [code, scale] : {std::pair{0x3e00, 1.5f}, {1, 0x1p-24f}, {0xfbff, -65504.0f}}) {
    data += little_endian(static_cast<unsigned>(code), 2);
    for (int i = 0; i < 32; ++i) {
      const int integer = i == 31 ? -128 : 127 - 8 * i;
      data += static_cast<char>(integer);
      expected.push_back(static_cast<float>(integer) * scale);
    }
  }
  const gguf_file file{.infos = {info_of("t", {32, 3}, 8, 0)}, .data = data};
  const tensor_info info = parse(file).at(0);
  EXPECT_EQ(info.type, dtype::f32);
  EXPECT_EQ(floats_of(file.text(), info), expected);
  std::vector<float> part(40);
  read_codes(bytes_of(file.text()), info, 30, 40, reinterpret_cast<std::byte*>(part.data()));
  EXPECT_EQ(part, std::vector<float>(expected.begin() + 30, expected.begin() + 70));
}

TEST(Gguf, ReadsBlocksOfQ4_0) {
  std::string data;
  std::vector<float> expected(64);
  for (unsigned block = 0; block < 2; ++block) {
    data += little_endian(block == 0 ? 0x3c00 : 0xb555, 2);  // 1 and -1365 / 2^12
    for (unsigned i = 0; i < 16; ++i) {
      const float scale = block == 0 ? 1.0f : -1365 * 0x1p-12f;
      data += static_cast<char>(i | (i * 7 % 16) << 4);
      expected[block * 32 + i] = (static_cast<float>(i) - 8) * scale;
      expected[block * 32 + 16 + i] = (static_cast<float>(i * 7 % 16) - 8) * scale;
    }
  }
  const gguf_file file{.infos = {info_of("t", {64}, 2, 0)}, .data = data};
  EXPECT_EQ(floats_of(file.text(), parse(file).at(0)), expected);
}

TEST(Gguf, BlocksAreWholeAndInTheFile) {
  for (const unsigned type : {2u, 8u}) {
    const std::size_t size = type == 8 ? 34 : 18;
    const std::string rows = "must have rows of whole blocks of 32";
    refuse({.infos = {info_of("t", {16, 2}, type, 0)}, .data = std::string(size, 'x')}, rows);
    refuse({.infos = {info_of("t", {}, type, 0)}, .data = std::string(size, 'x')}, rows);
    const gguf_file two{.infos = {info_of("t", {32}, type, 0), info_of("u", {32}, type, 64)},
                        .data = std::string(64 + size, 'x')};
    EXPECT_EQ(parse(two).size(), 2u);
    refuse({.infos = two.infos, .data = std::string(63 + size, 'x')}, "its data exceeds the file");
    refuse({.infos = {info_of("t", {32, 4}, type, 0), info_of("u", {32}, type, 64)},
            .data = std::string(64 + 4 * size, 'x')},
           "it shares bytes with tensor \"u\"");
  }
}

TEST(Gguf, SkipsEveryKindOfValue) {
  const std::string numbers = little_endian(0x0807060504030201, 8);
  gguf_file file;
  const unsigned sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  for (unsigned type = 0; type < 13; ++type) {
    if (sizes[type] != 0)
      file.pairs.push_back(pair_of("a.b", type, numbers.substr(0, sizes[type])));
  }
  file.pairs.push_back(pair_of("c", 8, text_of("text \xff")));
  file.pairs.push_back(pair_of("d", 9, little_endian(2, 4) + little_endian(3, 8) + "abcdef"));
  file.pairs.push_back(
      pair_of("e", 9, little_endian(8, 4) + little_endian(2, 8) + text_of("x") + text_of("")));
  const std::string inner = little_endian(0, 4) + little_endian(1, 8) + "z";
  file.pairs.push_back(pair_of("f", 9, little_endian(9, 4) + little_endian(2, 8) + inner + inner));
  file.pairs.push_back(pair_of("general.alignment", 4, little_endian(64, 4)));
  file.alignment = 64;
  file.infos = {info_of("t", {4}, 24, 0), info_of("u", {1}, 24, 64)};
  file.data = "abcd" + std::string(60, '\0') + "e";
  const std::vector<tensor_info> tensors = parse(file);
  EXPECT_EQ(codes_of(file.text(), tensors.at(0)), "abcd");
  EXPECT_EQ(codes_of(file.text(), tensors.at(1)), "e");
}

TEST(Gguf, BrokenPairsAreRefused) {
  const auto refuse_pair = [](const std::string& pair, std::string_view text) {
    refuse({.pairs = {pair}}, text);
  };
  refuse_pair(pair_of("k", 13, ""), "unknown type 13 of a value");
  refuse_pair(pair_of("k", 9, little_endian(13, 4) + little_endian(0, 8)), "unknown type 13");
  refuse_pair(pair_of("k", 9, little_endian(12, 4) + little_endian(1ull << 61, 8)),
              "the file ends before the end of an array");
  refuse_pair(pair_of("k", 9, little_endian(8, 4) + little_endian(1ull << 61, 8)),
              "the file ends before the end of an array");
  refuse_pair(pair_of("k", 8, little_endian(~0ull, 8)), "the file ends before the end of a string");
  std::string nested = little_endian(0, 4) + little_endian(0, 8);
  for (int i = 0; i < 8; ++i) nested = little_endian(9, 4) + little_endian(1, 8) + nested;
  refuse_pair(pair_of("k", 9, nested), "arrays are nested too deeply");
  const std::string alignment = pair_of("general.alignment", 4, little_endian(32, 4));
  refuse({.pairs = {alignment, alignment}}, "the key general.alignment occurs twice");
  refuse_pair(pair_of("general.alignment", 4, little_endian(0, 4)), "multiple of 8, not 0");
  refuse_pair(pair_of("general.alignment", 4, little_endian(12, 4)), "multiple of 8, not 12");
  refuse_pair(pair_of("general.alignment", 10, little_endian(32, 8)), "of type UINT32");
}

TEST(Gguf, BrokenTensorsAreRefused) {
  const std::string data(64, 'x');
  const auto refuse_info = [&](const std::string& info, std::string_view text) {
    refuse({.infos = {info}, .data = data}, text);
  };
  refuse_info(info_of("t", {17}, 0, 0), "tensor \"t\": its data exceeds the file");
  refuse_info(info_of("t", {1}, 0, 96), "tensor \"t\": its data exceeds the file");
  refuse_info(info_of("t", {1}, 12, 96), "tensor \"t\": its data exceeds the file");
  refuse_info(info_of("t", {1}, 0, ~31ull), "its data exceeds the file");
  refuse_info(info_of("t", {1}, 0, 4), "its offset 4 is not a multiple of 32");
  refuse_info(info_of("t", {1ull << 32, 1ull << 32}, 0, 0), "the product of the shape exceeds");
  refuse_info(info_of("t", {1ull << 32, 1ull << 32}, 12, 0), "the product of the shape exceeds");
  refuse_info(info_of("t", {1ull << 60}, 0, 0), "in bits exceeds 64 bits");
  refuse_info(info_of("t\xff", {1}, 0, 0), "the name of a tensor is not UTF-8");
  refuse_info(info_of(std::string(4097, 'n'), {1}, 0, 0), "more than 4096 bytes");
  refuse_info(info_of("t", std::vector<std::uint64_t>(65, 1), 0, 0), "more than 64 dimensions");
  refuse({.infos = {info_of("t", {1}, 0, 0), info_of("t", {1}, 0, 32)}, .data = data},
         "tensor \"t\": it occurs twice");
  refuse({.infos = {info_of("a", {9}, 0, 0), info_of("b", {1}, 0, 32)}, .data = data},
         "tensor \"a\": it shares bytes with tensor \"b\"");
  EXPECT_EQ(
      parse({.infos = {info_of("a", {8}, 0, 0), info_of("b", {8}, 0, 32)}, .data = data}).size(),
      2u);
}

TEST(Gguf, VersionsAndByteOrder) {
  const auto unsupported = error_kind::unsupported;
  refuse({.version = 1}, "byte 4: GGUF version 1; versions 2 and 3 are read", unsupported);
  refuse({.version = 4}, "byte 4: GGUF version 4", unsupported);
  refuse({.version = 0}, "byte 4: GGUF version 0", unsupported);
  refuse({.version = 0x03000000}, "byte 4: a big-endian GGUF file", unsupported);
  EXPECT_TRUE(parse({}).empty());
}

TEST(Gguf, ClaimedCountsMustFitTheFile) {
  std::string file = gguf_file{.infos = {info_of("t", {1}, 24, 0)}, .data = "x"}.text();
  EXPECT_EQ(parse_gguf(bytes_of(file)).tensors.size(), 1u);
  std::string many = file;
  many.replace(8, 8, little_endian(~0ull, 8));
  expect_refused([&] { parse_gguf(bytes_of(many)); }, error_kind::malformed,
                 "the file has no room for 18446744073709551615 tensors");
  many = file;
  many.replace(16, 8, little_endian(~0ull, 8));
  expect_refused([&] { parse_gguf(bytes_of(many)); }, error_kind::malformed, "the file ends");
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::string cut = file.substr(0, size);
    expect_refused([&] { parse_gguf(bytes_of(cut)); }, error_kind::malformed, "");
  }
}

TEST(Gguf, OpensFiles) {
  const scratch_folder folder;
  const gguf_file content{.infos = {info_of("q", {32}, 3, 0), info_of("w", {2}, 1, 32)},
                          .data = std::string(32, 'q') + "abcd"};
  const tensor_file file = tensor_file::open(folder.write("blob", content.text()));
  EXPECT_EQ(file.format(), file_format::gguf);
  EXPECT_EQ(codes_of(file, file.find("w")), "abcd");
  expect_refused([&] { static_cast<void>(file.bytes(file.find("q"))); }, error_kind::unsupported,
                 "blob: tensor \"q\": elements are quantized in blocks of Q4_1");
  expect_refused([&] { tensor_file::open(folder.write("a.GGUF", "no")); }, error_kind::malformed,
                 "a.GGUF: byte 0: the file ends before the end of the magic number");
}

}  // namespace
}  // namespace samebits::tensor_file::testing
