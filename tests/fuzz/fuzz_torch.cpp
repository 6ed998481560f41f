// Fuzz target: parse_torch on arbitrary bytes, and the data of the storages.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "invariants.hpp"
#include "tensor_file/torch/torch.hpp"
#include "tensor_file/zip/zip.hpp"

namespace samebits::fuzz {
namespace {

void require_read(file_bytes file, tensor_file::zip_members& members, const tensor_info& info) {
  try {
    require_tensor(info.part == 0 ? file : members.bytes(file, info.part - 1), info);
  } catch (const tensor_file::file_error& error) {
    require_message(error.what());
  }
}

void check(file_bytes file) {
  tensor_file::file_contents contents;
  if (!accepts(contents, [&] { return tensor_file::parse_torch(file); })) return;
  constexpr std::uint64_t limit = 1 << 22;
  const std::size_t parts = contents.members.size();
  tensor_file::zip_members members(std::move(contents.members), limit);
  std::set<std::string> names;
  for (const tensor_info& info : contents.tensors) {
    require(names.insert(info.name).second, "no two tensors have the same name");
    require(info.name.size() <= 4096, "names keep to their limit");
    require(tensor_file::find_invalid_utf8(info.name) == std::string_view::npos, "names are UTF-8");
    require(info.part <= parts, "a part is a member");
    if (info.unread.empty()) {
      require_read(file, members, info);
    } else {
      require_message(info.unread);
    }
  }
}

}  // namespace
}  // namespace samebits::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  samebits::fuzz::check(std::as_bytes(std::span(data, size)));
  return 0;
}
