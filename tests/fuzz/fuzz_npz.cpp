// Fuzz target: parse_npz on arbitrary bytes, and the data of its members.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "invariants.hpp"
#include "tensor_file/npy/npz.hpp"
#include "tensor_file/zip/zip.hpp"

namespace samebits::fuzz {
namespace {

using tensor_file::zip_member;

void require_members(file_bytes file, std::vector<zip_member> members) {
  std::set<std::string> names;
  std::sort(members.begin(), members.end(),
            [](const zip_member& a, const zip_member& b) { return a.offset < b.offset; });
  std::uint64_t end = 0;
  for (const zip_member& member : members) {
    require(names.insert(member.name).second, "no two members have the same name");
    require(tensor_file::find_invalid_utf8(member.name) == std::string_view::npos,
            "names are UTF-8");
    require(member.offset >= end && member.offset <= file.size(), "members share no bytes");
    require(member.packed_bytes <= file.size() - member.offset, "members lie in the file");
    end = member.offset + member.packed_bytes;
  }
}

void require_read(file_bytes file, tensor_file::zip_members& members, const tensor_info& info) {
  try {
    const file_bytes bytes = members.bytes(file, info.part - 1);
    require(info.offset + info.bytes == bytes.size(), "the data fills the member");
    require_tensor(bytes, info);
    require_fortran_strides(info);
  } catch (const tensor_file::file_error& error) {
    require_message(error.what());
  }
}

void check(file_bytes file) {
  tensor_file::file_contents contents;
  if (!accepts(contents, [&] { return tensor_file::parse_npz(file); })) return;
  const std::vector<zip_member> members = tensor_file::parse_zip(file);
  require(members.size() == contents.tensors.size(), "every member is listed");
  require_members(file, members);
  constexpr std::uint64_t limit = 1 << 22;
  const std::size_t parts = contents.members.size();
  tensor_file::zip_members read(std::move(contents.members), limit);
  for (const tensor_info& info : contents.tensors) {
    require(info.part <= parts, "a part is a member");
    if (!info.unread.empty()) {
      require_message(info.unread);
    } else {
      require(info.part != 0, "a tensor that is read has a member");
      require_read(file, read, info);
    }
  }
}

}  // namespace
}  // namespace samebits::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  samebits::fuzz::check(std::as_bytes(std::span(data, size)));
  return 0;
}
