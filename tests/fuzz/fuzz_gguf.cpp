// Fuzz target: parse_gguf on arbitrary bytes.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "invariants.hpp"
#include "tensor_file/gguf/gguf.hpp"

namespace samebits::fuzz {
namespace {

void check(file_bytes file) {
  std::vector<tensor_info> tensors;
  if (!accepts(tensors, [&] { return tensor_file::parse_gguf(file).tensors; })) return;
  std::set<std::string> names;
  std::uint64_t end = 0;
  for (const tensor_info& info : tensors) {
    require(names.insert(info.name).second, "no two tensors have the same name");
    require(info.offset >= end && info.offset <= file.size(), "tensors share no bytes");
    end = info.offset;
    if (!info.unread.empty()) {
      require_message(info.unread);
      continue;
    }
    require_tensor(file, info);
    end += tensor_file::data_bytes(file, info).size();
  }
}

}  // namespace
}  // namespace samebits::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  samebits::fuzz::check(std::as_bytes(std::span(data, size)));
  return 0;
}
