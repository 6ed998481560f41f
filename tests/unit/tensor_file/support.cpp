// What the tests of the readers share: implementation.
#include "support.hpp"

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "tensor_file/codes.hpp"
#include "tensor_file/utf8.hpp"

namespace samebits::tensor_file::testing {

std::string little_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

std::string npy_of(int major, std::string_view header, std::string_view data) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  file += little_endian(header.size(), major == 1 ? 2 : 4);
  return file.append(header).append(data);
}

std::string safetensors_of(std::string_view header, std::string_view data) {
  return little_endian(header.size(), 8).append(header).append(data);
}

namespace {

/// The codes of a tensor that read(out) writes, and no byte beside them.
template <class Read>
std::string codes_by(const Read& read, const tensor_info& info) {
  const std::size_t size = info.count * static_cast<std::size_t>(code_bytes(info.type));
  std::vector<std::byte> out(size + 2, std::byte{0xa5});
  read(out.data() + 1);
  EXPECT_EQ(out.front(), std::byte{0xa5});
  EXPECT_EQ(out.back(), std::byte{0xa5});
  return {reinterpret_cast<const char*>(out.data()) + 1, size};
}

}  // namespace

std::string codes_of(std::string_view file, const tensor_info& info) {
  return codes_by([&](std::byte* out) { read_codes(bytes_of(file), info, 0, info.count, out); },
                  info);
}

std::string codes_of(const tensor_file& file, const tensor_info& info) {
  return codes_by([&](std::byte* out) { file.read_codes(info, 0, info.count, out); }, info);
}

std::string naive_codes_of(std::string_view file, const tensor_info& info) {
  const auto width = static_cast<std::size_t>(code_bytes(info.type));
  const auto component = static_cast<std::size_t>(spec_of(info.type).component_bytes);
  std::string out;
  for (std::uint64_t i = 0; i < info.count; ++i) {
    std::uint64_t rest = i;
    std::uint64_t position = 0;
    std::uint64_t later = info.count;  // Fortran stride of the dimension, from the last one down
    for (std::size_t k = info.shape.size(); k-- > 0;) {
      later /= info.shape[k];
      position += rest % info.shape[k] * later;
      rest /= info.shape[k];
    }
    if (info.strides.empty()) position = i;
    const std::string_view element = file.substr(info.offset + position * width, width);
    for (std::size_t at = 0; at < width; ++at) {
      const bool big = info.bytes_order == byte_order::big;
      out += element[big ? at - at % component + (component - 1 - at % component) : at];
    }
  }
  return out;
}

void expect_refused(const std::function<void()>& action, error_kind kind, std::string_view text) {
  try {
    action();
    ADD_FAILURE() << "accepted; expected a refusal with: " << text;
  } catch (const file_error& error) {
    const std::string_view message = error.what();
    EXPECT_EQ(error.kind(), kind) << message;
    EXPECT_NE(message.find(text), std::string_view::npos)
        << "got: " << message << "\nnot: " << text;
    EXPECT_EQ(find_invalid_utf8(message), std::string_view::npos) << message;
    for (const char c : message) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << message;
    EXPECT_LE(message.size(), 1000u) << message;
  }
}

scratch_folder::scratch_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "samebits-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp: " + name);
  folder_ = name;
}

scratch_folder::~scratch_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::filesystem::path scratch_folder::write(std::string_view name, std::string_view content) const {
  std::filesystem::path target = path(name);
  std::ofstream out(target, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + target.string());
  return target;
}

std::size_t scratch_folder::entries() const {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                                std::filesystem::directory_iterator()));
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace samebits::tensor_file::testing
