// Small .npy files as NumPy 2.4.6 writes them, and what they hold. npy_test.cpp compares some with the
// bytes that NumPy wrote; cli.numpy reads files of the NumPy that is installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support.hpp"
#include "tensor_file/dtype.hpp"

namespace samebits::tensor_file::testing {

enum class element_order : std::uint8_t { c, fortran };

struct numpy_file {
  std::string label;
  dtype type;
  std::vector<std::uint64_t> shape;
  element_order order;
  byte_order bytes_order;
  std::string file;
  std::string codes;  ///< array.astype(little endian).tobytes('C')
};

/// An array whose bytes are 5, 22, 39, ... in C order.
struct numpy_array {
  const char* descr;
  dtype type;
  std::vector<std::uint64_t> shape;
  element_order order = element_order::c;
  int version = 1;
};

inline std::string numpy_header(const numpy_array& a) {
  const bool fortran = a.order == element_order::fortran;
  std::string text = "{'descr': '" + std::string(a.descr) +
                     "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': (";
  for (std::size_t i = 0; i < a.shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(a.shape[i]);
  }
  text += a.shape.size() == 1 ? ",), }" : "), }";
  // Room for the axis that grows as arrays are appended, then spaces up to 64 bytes.
  if (!a.shape.empty()) {
    text.append(21 - std::to_string(fortran ? a.shape.back() : a.shape.front()).size(), ' ');
  }
  const std::size_t before = a.version == 1 ? 10 : 12;
  text.append(63 - (before + text.size()) % 64, ' ');
  return text + '\n';
}

/// The file that numpy.save writes.
inline numpy_file saved(const std::string& label, const numpy_array& a) {
  const auto width = static_cast<std::size_t>(code_bytes(a.type));
  const auto component = static_cast<std::size_t>(spec_of(a.type).component_bytes);
  const bool big = a.descr[0] == '>';
  std::size_t count = 1;
  for (const std::uint64_t extent : a.shape) count *= extent;
  std::string bytes;
  for (std::size_t i = 0; i < count * width; ++i) {
    bytes += static_cast<char>(a.type == dtype::boolean ? i % 2 : 5 + 17 * i);
  }
  std::string data(bytes.size(), '\0');
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t rest = i, at = 0, later = count;  // where element i of C order stands
    for (std::size_t k = a.shape.size(); k-- > 0;) {
      later /= a.shape[k];
      at += rest % a.shape[k] * later;
      rest /= a.shape[k];
    }
    if (a.order == element_order::c) at = i;
    bytes.copy(data.data() + at * width, width, i * width);
  }
  std::string codes = bytes;
  for (std::size_t i = 0; big && i < bytes.size(); ++i) {
    codes[i] = bytes[i / component * component + component - 1 - i % component];
  }
  return {label,
          a.type,
          a.shape,
          a.order,
          big ? byte_order::big : byte_order::little,
          npy_of(a.version, numpy_header(a), data),
          codes};
}

inline const std::vector<numpy_file>& numpy_files() {
  static const std::vector<numpy_file> files = [] {
    using enum dtype;
    constexpr auto fortran = element_order::fortran;
    std::vector<numpy_file> all;
    for (const auto& [descr, type] : {std::pair{"|b1", boolean}, {"|u1", u8}, {"|i1", i8}}) {
      all.push_back(saved(descr, {descr, type, {2, 3}}));
    }
    for (const auto& [name, type] : {std::pair{"i2", i16},
                                     {"u2", u16},
                                     {"i4", i32},
                                     {"u4", u32},
                                     {"i8", i64},
                                     {"u8", u64},
                                     {"f2", f16},
                                     {"f4", f32},
                                     {"f8", f64},
                                     {"c8", c64},
                                     {"c16", c128}}) {
      for (const char* const order : {"<", ">"}) {
        const std::string descr = std::string(order) + name;
        all.push_back(saved(descr, {descr.c_str(), type, {2, 3}}));
      }
    }
    for (const auto& [label, array] : std::vector<std::pair<const char*, numpy_array>>{
             {"<f2 Fortran", {"<f2", f16, {2, 3, 2}, fortran}},
             {">f4 Fortran", {">f4", f32, {2, 3, 2}, fortran}},
             {"|u1 Fortran", {"|u1", u8, {2, 3, 2}, fortran}},
             {">c8 Fortran", {">c8", c64, {2, 2}, fortran}},
             {"rank 0", {"<f4", f32, {}}},
             {"empty (0,)", {"<f4", f32, {0}}},
             {"empty (0, 3)", {"<f4", f32, {0, 3}}},
             {"empty (3, 0, 2)", {">u4", u32, {3, 0, 2}}},
             {"rank 18, header grown past 128 bytes",
              {"|u1", u8, std::vector<std::uint64_t>(18, 1)}},
             {"rank 12, no growth needed", {"|u1", u8, {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}},
             {"version 2.0", {"<u2", u16, {3}, element_order::c, 2}},
             {"version 3.0", {"<u2", u16, {3}, element_order::c, 3}},
             {"version 3.0 Fortran", {">u2", u16, {2, 2}, fortran, 3}}}) {
      all.push_back(saved(label, array));
    }
    return all;
  }();
  return files;
}

}  // namespace samebits::tensor_file::testing
