// parse_safetensors: what is accepted, and what it means.
#include "tensor_file/safetensors/safetensors.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support.hpp"
#include "tensor_file/codes.hpp"

namespace samebits::tensor_file::testing {
namespace {

using namespace std::string_view_literals;

std::string entry(std::string_view name, std::string_view type, std::string_view shape,
                  std::uint64_t begin, std::uint64_t end) {
  return "\"" + std::string(name) + R"(":{"dtype":")" + std::string(type) + R"(","shape":)" +
         std::string(shape) + R"(,"data_offsets":[)" + std::to_string(begin) + "," +
         std::to_string(end) + "]}";
}

tensor_info only_tensor(const std::string& file) {
  const file_contents header = parse_safetensors(bytes_of(file));
  EXPECT_EQ(header.tensors.size(), 1u);
  return header.tensors.at(0);
}

// As safetensors 0.8.0 writes it from NumPy arrays.
TEST(Safetensors, ReadsWhatTheReferenceWrites) {
  const std::string header = R"({"__metadata__":{"made":"by hand"},)"
                             R"("empty":{"dtype":"I64","shape":[0,4],"data_offsets":[0,0]},)"
                             R"("b":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                             R"("bf":{"dtype":"BF16","shape":[2,1],"data_offsets":[24,28]},)"
                             R"("scalar":{"dtype":"F16","shape":[],"data_offsets":[28,30]},)"
                             R"("c.e4m3":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[30,32]},)"
                             R"("a":{"dtype":"U8","shape":[3],"data_offsets":[32,35]}}      )";
  const std::string_view data =
      "\000\000\000\000\000\000\200?\000\000\000@\000\000@@\000\000\200@\000\000\240@"
      "\200?\000\300\000>8\376\001\002\003"sv;
  const std::string file = safetensors_of(header, data);
  ASSERT_EQ(file.size(), 435u);

  const file_contents parsed = parse_safetensors(bytes_of(file));
  ASSERT_EQ(parsed.metadata.size(), 1u);
  EXPECT_EQ(parsed.metadata[0], std::make_pair(std::string("made"), std::string("by hand")));
  ASSERT_EQ(parsed.tensors.size(), 6u);
  const tensor_info& b = parsed.tensors[1];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.type, dtype::f32);
  EXPECT_EQ(b.shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(b.count, 6u);
  EXPECT_EQ(b.bytes, 24u);
  EXPECT_EQ(b.offset, 8u + header.size());
  EXPECT_TRUE(b.strides.empty());
  EXPECT_EQ(b.bytes_order, byte_order::little);
  EXPECT_EQ(codes_of(file, b), data.substr(0, 24));
  EXPECT_EQ(codes_of(file, parsed.tensors[2]), data.substr(24, 4));
  EXPECT_EQ(parsed.tensors[3].shape, std::vector<std::uint64_t>{});
  EXPECT_EQ(parsed.tensors[3].count, 1u);
  EXPECT_EQ(codes_of(file, parsed.tensors[3]), data.substr(28, 2));
  EXPECT_EQ(codes_of(file, parsed.tensors[4]), "\x38\xfe");
  EXPECT_EQ(parsed.tensors[5].name, "a");
  EXPECT_EQ(codes_of(file, parsed.tensors[5]), "\1\2\3");
  EXPECT_EQ(parsed.tensors[0].count, 0u);
  EXPECT_EQ(codes_of(file, parsed.tensors[0]), "");
}

struct type_row {
  const char* name;
  dtype type;
  int bits;
};

// The names and sizes of the specification, written out once more.
constexpr type_row specified_types[] = {
    {"BOOL", dtype::boolean, 8},
    {"F4", dtype::f4, 4},
    {"F6_E2M3", dtype::f6_e2m3, 6},
    {"F6_E3M2", dtype::f6_e3m2, 6},
    {"U8", dtype::u8, 8},
    {"I8", dtype::i8, 8},
    {"F8_E5M2", dtype::f8_e5m2, 8},
    {"F8_E4M3", dtype::f8_e4m3, 8},
    {"F8_E8M0", dtype::f8_e8m0, 8},
    {"F8_E4M3FNUZ", dtype::f8_e4m3fnuz, 8},
    {"F8_E5M2FNUZ", dtype::f8_e5m2fnuz, 8},
    {"I16", dtype::i16, 16},
    {"U16", dtype::u16, 16},
    {"F16", dtype::f16, 16},
    {"BF16", dtype::bf16, 16},
    {"I32", dtype::i32, 32},
    {"U32", dtype::u32, 32},
    {"F32", dtype::f32, 32},
    {"C64", dtype::c64, 64},
    {"F64", dtype::f64, 64},
    {"I64", dtype::i64, 64},
    {"U64", dtype::u64, 64},
};

TEST(Safetensors, EveryTypeOfTheSpecification) {
  EXPECT_EQ(std::size(specified_types), static_cast<std::size_t>(dtype_count) - 1);
  const std::string data = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-";
  for (const type_row& row : specified_types) {
    SCOPED_TRACE(row.name);
    const auto size = static_cast<std::uint64_t>(row.bits);  // 8 elements
    const std::string file = safetensors_of("{" + entry("t", row.name, "[2,4]", 0, size) + "}",
                                            std::string_view(data).substr(0, size));
    const tensor_info info = only_tensor(file);
    EXPECT_EQ(info.type, row.type);
    EXPECT_EQ(spec_of(info.type).bits, row.bits);
    EXPECT_EQ(info.count, 8u);
    EXPECT_EQ(info.bytes, size);
    if (row.bits >= 8) {
      EXPECT_EQ(codes_of(file, info), data.substr(0, size));
    }
  }
}

// Any part of a packed tensor, against a bit-by-bit reading.
TEST(Safetensors, UnpacksAnyPart) {
  EXPECT_TRUE(rc::check([] {
    const type_row row =
        *rc::gen::element(specified_types[1], specified_types[2], specified_types[3]);
    const auto groups = *rc::gen::inRange<std::uint64_t>(0, 9);
    const std::uint64_t count = groups * 4;
    const std::uint64_t size = count * static_cast<std::uint64_t>(row.bits) / 8;
    std::string data(size, '\0');
    for (char& c : data) c = static_cast<char>(*rc::gen::inRange(0, 256));
    const std::string shape = "[" + std::to_string(groups) + ",4]";
    const std::string file = safetensors_of("{" + entry("t", row.name, shape, 0, size) + "}", data);

    std::string expected;
    for (std::uint64_t i = 0; i < count; ++i) {
      unsigned code = 0;
      for (unsigned b = 0; b < static_cast<unsigned>(row.bits); ++b) {
        const std::uint64_t bit = i * static_cast<std::uint64_t>(row.bits) + b;
        const auto byte = static_cast<unsigned char>(data[bit / 8]);
        code |= (byte >> (bit % 8) & 1u) << b;
      }
      expected += static_cast<char>(code);
    }
    const tensor_info info = only_tensor(file);
    RC_ASSERT(codes_of(file, info) == expected);
    const auto first = *rc::gen::inRange<std::uint64_t>(0, count + 1);
    const auto length = *rc::gen::inRange<std::uint64_t>(0, count - first + 1);
    std::string part(length, '\0');
    read_codes(bytes_of(file), info, first, length, reinterpret_cast<std::byte*>(part.data()));
    RC_ASSERT(part == expected.substr(first, length));
  }));
}

TEST(Safetensors, NoTensorsAtAll) {
  EXPECT_TRUE(parse_safetensors(bytes_of(safetensors_of("{}", ""))).tensors.empty());
  EXPECT_TRUE(parse_safetensors(bytes_of(safetensors_of("{ }   ", ""))).tensors.empty());
  const file_contents header =
      parse_safetensors(bytes_of(safetensors_of(R"({"__metadata__":{}})", "")));
  EXPECT_TRUE(header.tensors.empty());
  EXPECT_TRUE(header.metadata.empty());
}

TEST(Safetensors, SortsByOffsetWhateverTheOrderOfTheHeader) {
  const std::string file = safetensors_of(
      "{" + entry("z", "U8", "[2]", 3, 5) + "," + entry("hollow", "U8", "[0]", 3, 3) + "," +
          R"("__metadata__":{"b":"2","a":"1"},)" + entry("m", "U8", "[3]", 0, 3) + "," +
          entry("end", "F64", "[0]", 5, 5) + "," + entry("dead", "U8", "[0]", 5, 5) + "}",
      "abcde");
  const file_contents header = parse_safetensors(bytes_of(file));
  std::vector<std::string> names;
  for (const tensor_info& info : header.tensors) names.push_back(info.name);
  EXPECT_EQ(names, (std::vector<std::string>{"m", "hollow", "z", "end", "dead"}));
  EXPECT_EQ(codes_of(file, header.tensors[0]), "abc");
  EXPECT_EQ(codes_of(file, header.tensors[2]), "de");
  ASSERT_EQ(header.metadata.size(), 2u);
  EXPECT_EQ(header.metadata[0].first, "a");
  EXPECT_EQ(header.metadata[1].second, "2");
}

TEST(Safetensors, FieldsInAnyOrderAndSpacesAnywhere) {
  const std::string file = safetensors_of(
      "{ \"t\"\n:\t{ \"data_offsets\" : [ 0 , 2 ] , \"shape\" : [ 2 ] , \"dtype\"\r: \"U8\" } }  ",
      "xy");
  EXPECT_EQ(codes_of(file, only_tensor(file)), "xy");
}

TEST(Safetensors, NamesAreDecoded) {
  const std::string file =
      safetensors_of("{" + entry(R"(a\u00e9\n\"\u0000\ud83d\ude00)", "U8", "[0]", 0, 0) + "," +
                         entry("é", "U8", "[]", 0, 1) + "," + entry("", "U8", "[0]", 1, 1) + "}",
                     "x");
  const file_contents header = parse_safetensors(bytes_of(file));
  ASSERT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors[0].name, "aé\n\"\0\U0001f600"sv);
  EXPECT_EQ(header.tensors[1].name, "é");
  EXPECT_EQ(header.tensors[2].name, "");
}

TEST(Safetensors, LargestNumbersAndRank) {
  const std::string huge = "[0,18446744073709551615]";
  EXPECT_EQ(only_tensor(safetensors_of("{" + entry("t", "U8", huge, 0, 0) + "}", "")).shape.at(1),
            18446744073709551615u);
  std::string shape = "[1";
  for (std::size_t i = 1; i < max_rank; ++i) shape += ",1";
  const std::string file = safetensors_of("{" + entry("t", "U8", shape + "]", 0, 1) + "}", "x");
  EXPECT_EQ(only_tensor(file).shape.size(), max_rank);
}

TEST(Safetensors, HeaderAtEveryLimit) {
  const std::string header = "{" + entry("abc", "U8", "[2]", 0, 2) + "," +
                             entry("d", "U8", "[0]", 2, 2) +
                             R"(,"__metadata__":{"a":"","b":"","c":""}})";
  const safetensors_limits limits{
      .header_bytes = header.size(), .tensors = 2, .metadata = 3, .name_bytes = 3};
  const std::string file = safetensors_of(header, "xy");
  const file_contents parsed = parse_safetensors(bytes_of(file), limits);
  EXPECT_EQ(parsed.tensors.size(), 2u);
  EXPECT_EQ(parsed.metadata.size(), 3u);
}

TEST(Safetensors, LimitsAreThoseOfTheDocumentation) {
  constexpr safetensors_limits limits;
  EXPECT_EQ(limits.header_bytes, 100'000'000u);
  EXPECT_EQ(limits.tensors, 1'000'000u);
  EXPECT_EQ(limits.metadata, 65'536u);
  EXPECT_EQ(limits.name_bytes, 4'096u);
}

TEST(Safetensors, ManyTensors) {
  constexpr std::size_t tensors = 20'000;
  std::string header = "{";
  for (std::size_t i = 0; i < tensors; ++i) {
    if (i > 0) header += ',';
    header += entry("layer." + std::to_string(tensors - i), "U8", "[1]", i, i + 1);
  }
  const std::string file = safetensors_of(header + "}", std::string(tensors, 'x'));
  const file_contents parsed = parse_safetensors(bytes_of(file));
  ASSERT_EQ(parsed.tensors.size(), tensors);
  EXPECT_EQ(parsed.tensors.front().name, "layer.20000");
  EXPECT_EQ(parsed.tensors.back().offset, file.size() - 1);
}

}  // namespace
}  // namespace samebits::tensor_file::testing
