// Small .npy files as NumPy 2.4.6 writes them, and what they hold.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file::testing {

enum class element_order : std::uint8_t { c, fortran };

struct numpy_file {
  const char* label;
  dtype type;
  std::vector<std::uint64_t> shape;
  element_order order;
  byte_order bytes_order;
  std::string_view file;
  std::string_view codes;  // array.astype(little endian).tobytes('C')
};

// Each file stays one block.
// clang-format off
inline const std::vector<numpy_file>& numpy_files() {
  using namespace std::string_view_literals;
  static const std::vector<numpy_file> files = {
      {"b1", dtype::boolean, {2, 3}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '|b1', 'fortran_order': False, 'shape': (2, 3), }    "
       "                                                      \n\000\001\000\001\000\001"sv,
       "\000\001\000\001\000\001"sv},
      {"u1", dtype::u8, {2, 3}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }    "
       "                                                      \n\005\026'8IZ"sv,
       "\005\026'8IZ"sv},
      {"i1", dtype::i8, {2, 3}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '|i1', 'fortran_order': False, 'shape': (2, 3), }    "
       "                                                      \n\005\026'8IZ"sv,
       "\005\026'8IZ"sv},
      {"<i2", dtype::i16, {2, 3}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300"sv,
       "\005\026'8IZk|\215\236\257\300"sv},
      {">i2", dtype::i16, {2, 3}, element_order::c, byte_order::big,
       "\223NUMPY\001\000v\000{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300"sv,
       "\026\0058'ZI|k\236\215\300\257"sv},
      {"<u2", dtype::u16, {2, 3}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300"sv,
       "\005\026'8IZk|\215\236\257\300"sv},
      {">u2", dtype::u16, {2, 3}, element_order::c, byte_order::big,
       "\223NUMPY\001\000v\000{'descr': '>u2', 'fortran_order': False, 'shape': (2, 3), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300"sv,
       "\026\0058'ZI|k\236\215\300\257"sv},
      {"<i4", dtype::i32, {2, 3}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214"sv,
       "\005\026'8IZk|\215\236\257\300\321\342\363\004\025&7HYj{\214"sv},
      {">i4", dtype::i32, {2, 3}, element_order::c, byte_order::big,
       "\223NUMPY\001\000v\000{'descr': '>i4', 'fortran_order': False, 'shape': (2, 3), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214"sv,
       "8'\026\005|kZI\300\257\236\215\004\363\342\321H7&\025\214{jY"sv},
      {"<u4", dtype::u32, {2, 3}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<u4', 'fortran_order': False, 'shape': (2, 3), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214"sv,
       "\005\026'8IZk|\215\236\257\300\321\342\363\004\025&7HYj{\214"sv},
      {">u4", dtype::u32, {2, 3}, element_order::c, byte_order::big,
       "\223NUMPY\001\000v\000{'descr': '>u4', 'fortran_order': False, 'shape': (2, 3), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214"sv,
       "8'\026\005|kZI\300\257\236\215\004\363\342\321H7&\025\214{jY"sv},
      {"<i8", dtype::i64, {2, 2}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<i8', 'fortran_order': False, 'shape': (2, 2), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214\235\256\277\320\341\362\003\024"sv,
       "\005\026'8IZk|\215\236\257\300\321\342\363\004\025&7HYj{\214\235\256\277\320\341\362"
       "\003\024"sv},
      {">i8", dtype::i64, {2, 2}, element_order::c, byte_order::big,
       "\223NUMPY\001\000v\000{'descr': '>i8', 'fortran_order': False, 'shape': (2, 2), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214\235\256\277\320\341\362\003\024"sv,
       "|kZI8'\026\005\004\363\342\321\300\257\236\215\214{jYH7&\025\024\003\362\341\320\277"
       "\256\235"sv},
      {"<u8", dtype::u64, {2, 2}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<u8', 'fortran_order': False, 'shape': (2, 2), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214\235\256\277\320\341\362\003\024"sv,
       "\005\026'8IZk|\215\236\257\300\321\342\363\004\025&7HYj{\214\235\256\277\320\341\362"
       "\003\024"sv},
      {">u8", dtype::u64, {2, 2}, element_order::c, byte_order::big,
       "\223NUMPY\001\000v\000{'descr': '>u8', 'fortran_order': False, 'shape': (2, 2), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214\235\256\277\320\341\362\003\024"sv,
       "|kZI8'\026\005\004\363\342\321\300\257\236\215\214{jYH7&\025\024\003\362\341\320\277"
       "\256\235"sv},
      {"<f2", dtype::f16, {2, 3}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300"sv,
       "\005\026'8IZk|\215\236\257\300"sv},
      {">f2", dtype::f16, {2, 3}, element_order::c, byte_order::big,
       "\223NUMPY\001\000v\000{'descr': '>f2', 'fortran_order': False, 'shape': (2, 3), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300"sv,
       "\026\0058'ZI|k\236\215\300\257"sv},
      {"<f4", dtype::f32, {2, 3}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214"sv,
       "\005\026'8IZk|\215\236\257\300\321\342\363\004\025&7HYj{\214"sv},
      {">f4", dtype::f32, {2, 3}, element_order::c, byte_order::big,
       "\223NUMPY\001\000v\000{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214"sv,
       "8'\026\005|kZI\300\257\236\215\004\363\342\321H7&\025\214{jY"sv},
      {"<f8", dtype::f64, {2, 2}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214\235\256\277\320\341\362\003\024"sv,
       "\005\026'8IZk|\215\236\257\300\321\342\363\004\025&7HYj{\214\235\256\277\320\341\362"
       "\003\024"sv},
      {">f8", dtype::f64, {2, 2}, element_order::c, byte_order::big,
       "\223NUMPY\001\000v\000{'descr': '>f8', 'fortran_order': False, 'shape': (2, 2), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214\235\256\277\320\341\362\003\024"sv,
       "|kZI8'\026\005\004\363\342\321\300\257\236\215\214{jYH7&\025\024\003\362\341\320\277"
       "\256\235"sv},
      {"<c8", dtype::c64, {2, 2}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<c8', 'fortran_order': False, 'shape': (2, 2), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214\235\256\277\320\341\362\003\024"sv,
       "\005\026'8IZk|\215\236\257\300\321\342\363\004\025&7HYj{\214\235\256\277\320\341\362"
       "\003\024"sv},
      {">c8", dtype::c64, {2, 2}, element_order::c, byte_order::big,
       "\223NUMPY\001\000v\000{'descr': '>c8', 'fortran_order': False, 'shape': (2, 2), }    "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214\235\256\277\320\341\362\003\024"sv,
       "8'\026\005|kZI\300\257\236\215\004\363\342\321H7&\025\214{jY\320\277\256\235\024\003"
       "\362\341"sv},
      {"<c16", dtype::c128, {3}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<c16', 'fortran_order': False, 'shape': (3,), }     "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214\235\256\277\320\341\362\003\024%6GXiz\213\234\255"
       "\276\317\340\361\002\023$"sv,
       "\005\026'8IZk|\215\236\257\300\321\342\363\004\025&7HYj{\214\235\256\277\320\341\362"
       "\003\024%6GXiz\213\234\255\276\317\340\361\002\023$"sv},
      {">c16", dtype::c128, {3}, element_order::c, byte_order::big,
       "\223NUMPY\001\000v\000{'descr': '>c16', 'fortran_order': False, 'shape': (3,), }     "
       "                                                      \n\005\026'8IZk|\215\236\257"
       "\300\321\342\363\004\025&7HYj{\214\235\256\277\320\341\362\003\024%6GXiz\213\234\255"
       "\276\317\340\361\002\023$"sv,
       "|kZI8'\026\005\004\363\342\321\300\257\236\215\214{jYH7&\025\024\003\362\341\320\277"
       "\256\235\234\213ziXG6%$\023\002\361\340\317\276\255"sv},
      {"<f2 Fortran", dtype::f16, {2, 3, 2}, element_order::fortran, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<f2', 'fortran_order': True, 'shape': (2, 3, 2), }  "
       "                                                      \n\005\026\321\342IZ\025&\215"
       "\236Yj'8\363\004k|7H\257\300{\214"sv,
       "\005\026'8IZk|\215\236\257\300\321\342\363\004\025&7HYj{\214"sv},
      {">f4 Fortran", dtype::f32, {2, 3, 2}, element_order::fortran, byte_order::big,
       "\223NUMPY\001\000v\000{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3, 2), }  "
       "                                                      \n\005\026'8\235\256\277\320"
       "\215\236\257\300%6GX\025&7H\255\276\317\340IZk|\341\362\003\024\321\342\363\004iz\213"
       "\234Yj{\214\361\002\023$"sv,
       "8'\026\005|kZI\300\257\236\215\004\363\342\321H7&\025\214{jY\320\277\256\235\024\003"
       "\362\341XG6%\234\213zi\340\317\276\255$\023\002\361"sv},
      {"|u1 Fortran", dtype::u8, {2, 3, 2}, element_order::fortran, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }  "
       "                                                      \n\005k'\215I\257\026|8\236Z"
       "\300"sv,
       "\005\026'8IZk|\215\236\257\300"sv},
      {">c8 Fortran", dtype::c64, {2, 2}, element_order::fortran, byte_order::big,
       "\223NUMPY\001\000v\000{'descr': '>c8', 'fortran_order': True, 'shape': (2, 2), }     "
       "                                                      \n\005\026'8IZk|\025&7HYj{\214"
       "\215\236\257\300\321\342\363\004\235\256\277\320\341\362\003\024"sv,
       "8'\026\005|kZI\300\257\236\215\004\363\342\321H7&\025\214{jY\320\277\256\235\024\003"
       "\362\341"sv},
      {"rank 0", dtype::f32, {}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (), }        "
       "                                                      \n\005\026'8"sv,
       "\005\026'8"sv},
      {"empty (0,)", dtype::f32, {0}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }      "
       "                                                      \n"sv,
       ""sv},
      {"empty (0, 3)", dtype::f32, {0, 3}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }    "
       "                                                      \n"sv,
       ""sv},
      {"empty (3, 0, 2) Fortran", dtype::u32, {3, 0, 2}, element_order::c, byte_order::big,
       "\223NUMPY\001\000v\000{'descr': '>u4', 'fortran_order': False, 'shape': (3, 0, 2), } "
       "                                                      \n"sv,
       ""sv},
      {"rank 18, header grown past 128 bytes", dtype::u8, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, element_order::c, byte_order::little,
       "\223NUMPY\001\000\266\000{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 1, "
       "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), }                                      "
       "                                    \n\005"sv,
       "\005"sv},
      {"rank 12, no growth needed", dtype::u8, {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1, 1, 1, "
       "1, 1, 1, 1, 1, 1, 1, 1), }                            \n\005\026"sv,
       "\005\026"sv},
      {"rank 1 Fortran", dtype::u16, {3}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }      "
       "                                                      \n\005\026'8IZ"sv,
       "\005\026'8IZ"sv},
      {"version 1.0", dtype::u16, {3}, element_order::c, byte_order::little,
       "\223NUMPY\001\000v\000{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }      "
       "                                                      \n\005\026'8IZ"sv,
       "\005\026'8IZ"sv},
      {"version 2.0", dtype::u16, {3}, element_order::c, byte_order::little,
       "\223NUMPY\002\000t\000\000\000{'descr': '<u2', 'fortran_order': False, 'shape': (3,),"
       " }                                                          \n\005\026'8IZ"sv,
       "\005\026'8IZ"sv},
      {"version 3.0", dtype::u16, {3}, element_order::c, byte_order::little,
       "\223NUMPY\003\000t\000\000\000{'descr': '<u2', 'fortran_order': False, 'shape': (3,),"
       " }                                                          \n\005\026'8IZ"sv,
       "\005\026'8IZ"sv},
      {"version 3.0 Fortran", dtype::u16, {2, 2}, element_order::fortran, byte_order::big,
       "\223NUMPY\003\000t\000\000\000{'descr': '>u2', 'fortran_order': True, 'shape': (2, 2)"
       ", }                                                         \n\005\026IZ'8k|"sv,
       "\026\0058'ZI|k"sv},
  };
  return files;
}

/// What numpy.save writes for arrays that are refused.
inline const std::vector<std::pair<const char*, std::string_view>>& refused_numpy_files() {
  using namespace std::string_view_literals;
  static const std::vector<std::pair<const char*, std::string_view>> files = {
      {"structured",
       "\223NUMPY\001\000v\000{'descr': [('a', '<f4'), ('b', '<i2')], 'fortran_order': False,"
       " 'shape': (1,), }                                     \n\000\000\000\000\000\000"sv},
      {"unicode field name",
       "\223NUMPY\003\000t\000\000\000{'descr': [('\303\251\344\270\255', '<f4')], 'fortran_o"
       "rder': False, 'shape': (1,), }                                             \n\000\000"
       "\000\000"sv},
      {"bytes string",
       "\223NUMPY\001\000v\000{'descr': '|S2', 'fortran_order': False, 'shape': (1,), }      "
       "                                                      \nab"sv},
      {"text",
       "\223NUMPY\001\000v\000{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }      "
       "                                                      \na\000\000\000b\000\000\000"sv},
      {"raw bytes",
       "\223NUMPY\001\000v\000{'descr': '|V4', 'fortran_order': False, 'shape': (1,), }      "
       "                                                      \n\000\000\000\000"sv},
      {"date",
       "\223NUMPY\001\000v\000{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1,), }   "
       "                                                      \n\000\000\000\000\000\000\000"
       "\000"sv},
      {"duration",
       "\223NUMPY\001\000v\000{'descr': '<m8[ms]', 'fortran_order': False, 'shape': (1,), }  "
       "                                                      \n\000\000\000\000\000\000\000"
       "\000"sv},
      {"long double",
       "\223NUMPY\001\000v\000{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }     "
       "                                                      \n\000\000\000\000\000\000\000"
       "\000\000\000\000\000\000\000\000\000"sv},
      {"ml_dtypes bfloat16",
       "\223NUMPY\001\000v\000{'descr': '<V2', 'fortran_order': False, 'shape': (1,), }      "
       "                                                      \n\000\000"sv},
      {"ml_dtypes float8_e4m3fn",
       "\223NUMPY\001\000v\000{'descr': '<V1', 'fortran_order': False, 'shape': (1,), }      "
       "                                                      \n\000"sv},
      {"object",
       "\223NUMPY\001\000v\000{'descr': '|O', 'fortran_order': False, 'shape': (1,), }       "
       "                                                      \n\200\004\225\212\000\000\000"
       "\000\000\000\000\214\026numpy._core.multiarray\224\214\014_reconstruct\224\223\224"
       "\214\005numpy\224\214\007ndarray\224\223\224K\000\205\224C\001b\224\207\224R\224(K"
       "\001K\001\205\224h\003\214\005dtype\224\223\224\214\002O8\224\211\210\207\224R\224(K"
       "\003\214\001|\224NNNJ\377\377\377\377J\377\377\377\377K?t\224b\211]\224Nat\224b."sv},
  };
  return files;
}

// clang-format on

}  // namespace samebits::tensor_file::testing
