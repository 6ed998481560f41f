// parse_npy: what is accepted, and what it means.
#include "tensor_file/npy/npy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numpy_files.hpp"
#include "support.hpp"
#include "tensor_file/codes.hpp"

namespace samebits::tensor_file::testing {
namespace {

using namespace std::string_view_literals;

TEST(Npy, ReadsWhatNumPyWrites) {
  ASSERT_GE(numpy_files().size(), 30u);
  for (const numpy_file& sample : numpy_files()) {
    SCOPED_TRACE(sample.label);
    const tensor_info info = parse_npy(bytes_of(sample.file));
    EXPECT_EQ(info.name, "");
    EXPECT_EQ(info.type, sample.type);
    EXPECT_EQ(info.shape, sample.shape);
    EXPECT_EQ(!info.strides.empty(), sample.order == element_order::fortran);
    EXPECT_EQ(info.bytes_order, sample.bytes_order);
    EXPECT_EQ(info.offset + info.bytes, sample.file.size());
    EXPECT_EQ(codes_of(sample.file, info), sample.codes);
  }
}

// clang-format off
constexpr std::pair<const char*, std::string_view> by_numpy[] = {
    {"<i2",
     "\223NUMPY\001\000v\000{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }    "
     "                                                      \n\005\026'8IZk|\215\236\257\300"sv},
    {">f4 Fortran",
     "\223NUMPY\001\000v\000{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3, 2), }  "
     "                                                      \n\005\026'8\235\256\277\320"
     "\215\236\257\300%6GX\025&7H\255\276\317\340IZk|\341\362\003\024\321\342\363\004iz\213"
     "\234Yj{\214\361\002\023$"sv},
    {"rank 0",
     "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (), }        "
     "                                                      \n\005\026'8"sv},
    {"empty (0, 3)",
     "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }    "
     "                                                      \n"sv},
    {"rank 18, header grown past 128 bytes",
     "\223NUMPY\001\000\266\000{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 1, "
     "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), }                                      "
     "                                    \n\005"sv},
    {"rank 12, no growth needed",
     "\223NUMPY\001\000v\000{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1, 1, 1, "
     "1, 1, 1, 1, 1, 1, 1, 1), }                            \n\005\026"sv},
    {"version 3.0 Fortran",
     "\223NUMPY\003\000t\000\000\000{'descr': '>u2', 'fortran_order': True, 'shape': (2, 2)"
     ", }                                                         \n\005\026IZ'8k|"sv},
};
// clang-format on

TEST(Npy, SamplesAreWhatNumPyWrites) {
  for (const auto& [label, file] : by_numpy) {
    const auto sample = std::ranges::find(numpy_files(), label, &numpy_file::label);
    ASSERT_NE(sample, numpy_files().end()) << label;
    EXPECT_EQ(sample->file, file) << label;
  }
}

TEST(Npy, NumPySamplesCoverEveryType) {
  for (int i = 0; i < dtype_count; ++i) {
    const dtype type = dtype_at(i);
    bool little = false;
    bool big = false;
    for (const numpy_file& sample : numpy_files()) {
      if (sample.type != type) continue;
      (sample.bytes_order == byte_order::big ? big : little) = true;
    }
    const bool in_npy = *spec_of(type).npy != '\0';
    EXPECT_EQ(little, in_npy) << name(type);
    EXPECT_EQ(big, in_npy && spec_of(type).component_bytes > 1) << name(type);
  }
}

// The same dictionary as NumPy would read it, spelled in other ways.
TEST(Npy, AcceptsOtherSpellingsOfTheDictionary) {
  const char* const spellings[] = {
      "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }\n",
      "{'descr': '<u2', 'fortran_order': False, 'shape': (3,)}\n",
      "{'shape': (3,), 'fortran_order': False, 'descr': '<u2'}\n",
      "{'fortran_order':False,'shape':(3,),'descr':'<u2'}\n",
      "{\"descr\": \"<u2\", 'fortran_order': False, \"shape\": (3,)}\n",
      "  {  'descr'  :  '<u2'  ,\t'fortran_order' : False ,\r\n'shape' : ( 3 , ) , }    \n",
      "{'descr': '<u2', 'fortran_order': False, 'shape': (3,)}\n\n\n",
  };
  for (const char* const spelling : spellings) {
    for (const int version : {1, 2, 3}) {
      SCOPED_TRACE(spelling);
      const std::string file = npy_of(version, spelling, "abcdef");
      const tensor_info info = parse_npy(bytes_of(file));
      EXPECT_EQ(info.type, dtype::u16);
      EXPECT_EQ(info.shape, std::vector<std::uint64_t>{3});
      EXPECT_EQ(info.offset, file.size() - 6);
      EXPECT_EQ(codes_of(file, info), "abcdef");
    }
  }
}

TEST(Npy, AcceptsLongIntegersOfPython2) {
  const char* const header = "{'descr': '<u2', 'fortran_order': False, 'shape': (1L, 3L)}\n";
  const std::vector<std::uint64_t> shape{1, 3};
  EXPECT_EQ(parse_npy(bytes_of(npy_of(1, header, "abcdef"))).shape, shape);
  EXPECT_EQ(parse_npy(bytes_of(npy_of(2, header, "abcdef"))).shape, shape);
}

TEST(Npy, ShapesOfEveryRank) {
  std::string tuple;
  for (std::size_t rank = 0; rank <= max_rank; ++rank) {
    const std::string header =
        "{'descr': '|u1', 'fortran_order': True, 'shape': (" + tuple + ")}\n";
    const std::string file = npy_of(1, header, "x");
    const tensor_info info = parse_npy(bytes_of(file));
    EXPECT_EQ(info.shape, std::vector<std::uint64_t>(rank, 1));
    EXPECT_EQ(info.count, 1u);
    EXPECT_EQ(codes_of(file, info), "x");
    tuple += "1,";
  }
}

TEST(Npy, HeaderOfTheLargestSize) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}";
  header.append(max_npy_header_bytes - header.size() - 1, ' ');
  header += '\n';
  for (const int version : {1, 2, 3}) {
    const std::string file = npy_of(version, header, "xy");
    EXPECT_EQ(codes_of(file, parse_npy(bytes_of(file))), "xy");
  }
}

// Single bytes have no order, so every mark reads the same.
TEST(Npy, SingleBytesTakeAnyOrderMark) {
  for (const char* const descr : {"|u1", "<u1", ">u1"}) {
    const std::string header =
        "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (2,)}\n";
    const tensor_info info = parse_npy(bytes_of(npy_of(1, header, "xy")));
    EXPECT_EQ(info.type, dtype::u8);
    EXPECT_EQ(info.bytes_order, byte_order::little);
  }
}

TEST(Npy, EmptyArrayWithHugeOtherExtents) {
  const std::string header =
      "{'descr': '<f8', 'fortran_order': True, 'shape': (0, 18446744073709551615, 7)}\n";
  const tensor_info info = parse_npy(bytes_of(npy_of(1, header, "")));
  EXPECT_EQ(info.count, 0u);
  EXPECT_EQ(info.bytes, 0u);
  EXPECT_EQ(codes_of(npy_of(1, header, ""), info), "");
}

std::string header_of(dtype type, byte_order bytes_order, element_order order,
                      const std::vector<std::uint64_t>& shape) {
  std::string text = "{'descr': '";
  text += bytes_order == byte_order::big ? '>' : '<';
  text += spec_of(type).npy;
  text += "', 'fortran_order': ";
  text += order == element_order::fortran ? "True" : "False";
  text += ", 'shape': (";
  for (const std::uint64_t extent : shape) text += std::to_string(extent) + ",";
  return text + ")}\n";
}

// Any type, order, endianness and shape, read in parts, against one byte at a time.
TEST(Npy, AnyLayoutReadsAsDefined) {
  std::vector<dtype> types;
  for (int i = 0; i < dtype_count; ++i) {
    if (*spec_of(dtype_at(i)).npy != '\0') types.push_back(dtype_at(i));
  }
  EXPECT_TRUE(rc::check([&] {
    const dtype type = *rc::gen::elementOf(types);
    const auto bytes_order = *rc::gen::element(byte_order::little, byte_order::big);
    const auto order = *rc::gen::element(element_order::c, element_order::fortran);
    const auto rank = *rc::gen::inRange<std::size_t>(0, 6);
    const auto shape = *rc::gen::container<std::vector<std::uint64_t>>(
        rank, rc::gen::inRange<std::uint64_t>(0, 5));
    std::uint64_t count = 1;
    for (const std::uint64_t extent : shape) count *= extent;
    std::string data(count * static_cast<std::size_t>(code_bytes(type)), '\0');
    std::uint64_t state = *rc::gen::arbitrary<std::uint64_t>();
    for (char& c : data) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      c = static_cast<char>(state >> 56);
    }

    const std::string file = npy_of(1, header_of(type, bytes_order, order, shape), data);
    const tensor_info info = parse_npy(bytes_of(file));
    RC_ASSERT(info.shape == shape);
    RC_ASSERT(info.count == count);
    const std::string expected = naive_codes_of(file, info);
    RC_ASSERT(codes_of(file, info) == expected);

    const auto width = static_cast<std::size_t>(code_bytes(type));
    const auto first = *rc::gen::inRange<std::uint64_t>(0, count + 1);
    const auto length = *rc::gen::inRange<std::uint64_t>(0, count - first + 1);
    std::string part(length * width, '\0');
    read_codes(bytes_of(file), info, first, length, reinterpret_cast<std::byte*>(part.data()));
    RC_ASSERT(part == expected.substr(first * width, length * width));
  }));
}

}  // namespace
}  // namespace samebits::tensor_file::testing
