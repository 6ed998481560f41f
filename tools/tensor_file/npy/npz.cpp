// NumPy's .npz files: implementation.
#include "tensor_file/npy/npz.hpp"

#include "tensor_file/npy/npy.hpp"
#include "tensor_file/zip/inflate.hpp"
#include "tensor_file/zip/zip.hpp"

namespace samebits::tensor_file {
namespace {

constexpr std::string_view extension = ".npy";

tensor_info parse_deflated(std::span<const std::byte> file, const zip_member& member) {
  constexpr std::uint64_t longest_start = max_npy_header_bytes + 12;
  std::vector<std::byte> start(std::min(member.bytes, longest_start));
  start.resize(inflate_start(packed_data(file, member), start));
  return parse_npy_start(start, member.bytes);
}

tensor_info parse_member(std::span<const std::byte> file, const zip_member& member) {
  const std::string why =
      member.name.ends_with(extension) ? unread_reason(member) : "not a .npy file";
  if (!why.empty()) return {.unread = why};
  return in_context("member " + quote(member.name), [&]() -> tensor_info {
    try {
      if (member.method == zip_deflated) return parse_deflated(file, member);
      return parse_npy(packed_data(file, member));
    } catch (const file_error& error) {
      if (error.kind() != error_kind::unsupported) throw;
      return {.unread = error.what()};
    }
  });
}

}  // namespace

file_contents parse_npz(std::span<const std::byte> file) {
  file_contents contents;
  for (zip_member& member : parse_zip(file)) {
    tensor_info info = parse_member(file, member);
    info.name = member.name;
    if (info.name.ends_with(extension)) info.name.resize(info.name.size() - extension.size());
    if (info.unread.empty()) {
      contents.members.push_back(std::move(member));
      info.part = contents.members.size();
    }
    contents.tensors.push_back(std::move(info));
  }
  return contents;
}

}  // namespace samebits::tensor_file
