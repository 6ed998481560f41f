// What the tests of the readers share: files built from text, and the shape of a refusal.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "tensor_file/error.hpp"
#include "tensor_file/tensor.hpp"

namespace samebits::tensor_file::testing {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// The low `bytes` bytes of value, little endian.
std::string little_endian(std::uint64_t value, int bytes);

/// A .npy file with exactly this header text.
std::string npy_of(int major, std::string_view header, std::string_view data);

/// A .safetensors file with exactly this header text.
std::string safetensors_of(std::string_view header, std::string_view data);

/// All codes of the tensor, read in one call into unaligned memory.
std::string codes_of(std::string_view file, const tensor_info& info);
std::string codes_of(const tensor_file& file, const tensor_info& info);

/// The codes of the tensor by the definition of its layout, one index and one byte at a time. For
/// elements of whole bytes.
std::string naive_codes_of(std::string_view file, const tensor_info& info);

/// Expects a file_error of that kind whose message holds the text, and is one short line of valid
/// UTF-8 without control characters.
void expect_refused(const std::function<void()>& action, error_kind kind, std::string_view text);

/// An empty folder of its own, removed with its content at the end.
class scratch_folder {
 public:
  scratch_folder();
  ~scratch_folder();
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  std::filesystem::path path(std::string_view name) const { return folder_ / name; }
  std::filesystem::path write(std::string_view name, std::string_view content) const;
  std::size_t entries() const;

 private:
  std::filesystem::path folder_;
};

std::string content_of(const std::filesystem::path& path);

}  // namespace samebits::tensor_file::testing
