// Fuzz target: parse_npy on arbitrary bytes.
#include <cstddef>
#include <cstdint>
#include <string>

#include "invariants.hpp"
#include "tensor_file/npy/npy.hpp"

namespace samebits::fuzz {
namespace {

// The same tensor in the plainest spelling.
std::string respelled(file_bytes file, const tensor_info& info) {
  const tensor_file::dtype_spec spec = spec_of(info.type);
  std::string dict = "{'descr': '";
  dict += info.bytes_order == tensor_file::byte_order::big ? '>' : '<';
  dict += spec.npy;
  dict += "', 'fortran_order': ";
  dict += !info.strides.empty() ? "True" : "False";
  dict += ", 'shape': (";
  for (const std::uint64_t extent : info.shape) dict += std::to_string(extent) + ",";
  dict += ")}\n";
  std::string text = "\x93NUMPY\x01";
  text += '\0';
  text += static_cast<char>(dict.size() & 0xff);
  text += static_cast<char>(dict.size() >> 8);
  text += dict;
  const auto data = file.subspan(info.offset);
  return text.append(reinterpret_cast<const char*>(data.data()), data.size());
}

void check(file_bytes file) {
  tensor_info info;
  if (!accepts(info, [&] { return tensor_file::parse_npy(file); })) return;
  require(info.name.empty(), "the tensor has no name");
  require(info.offset + info.bytes == file.size(), "the data fills the file");
  require_tensor(file, info);
  require_fortran_strides(info);

  const std::string text = respelled(file, info);
  tensor_info again = tensor_file::parse_npy(std::as_bytes(std::span(text)));
  again.offset = info.offset;
  require(again == info, "the plainest spelling means the same");
}

}  // namespace
}  // namespace samebits::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  samebits::fuzz::check(std::as_bytes(std::span(data, size)));
  return 0;
}
