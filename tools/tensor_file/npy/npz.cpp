// NumPy's .npz files: implementation.
#include "tensor_file/npy/npz.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/npy/npy.hpp"
#include "tensor_file/zip/inflate.hpp"

namespace samebits::tensor_file {
namespace {

constexpr std::string_view extension = ".npy";

std::span<const std::byte> packed_data(std::span<const std::byte> file, const zip_member& member) {
  return file.subspan(member.offset, member.packed_bytes);
}

// Why a member is not read; empty if it is.
std::string refusal(const zip_member& member) {
  if (!member.name.ends_with(extension)) return "not a .npy file";
  if (member.encrypted) return "encrypted";
  if (member.method == zip_stored) return {};
  if (member.method != zip_deflated) {
    return "compressed by method " + std::to_string(member.method) +
           ", which is not read; save with numpy.savez";
  }
  if (!can_inflate()) return "deflated, and this build has no zlib; save with numpy.savez";
  return {};
}

tensor_info parse_deflated(std::span<const std::byte> file, const zip_member& member) {
  constexpr std::uint64_t longest_start = max_npy_header_bytes + 12;
  std::vector<std::byte> start(std::min(member.bytes, longest_start));
  start.resize(inflate_start(packed_data(file, member), start));
  return parse_npy_start(start, member.bytes);
}

tensor_info parse_member(std::span<const std::byte> file, const zip_member& member) {
  const std::string why = refusal(member);
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

npz_members::npz_members(std::vector<zip_member> members, std::uint64_t most)
    : members_(std::move(members)), data_(members_.size()), most_(most) {}

std::span<const std::byte> npz_members::bytes(std::span<const std::byte> file, std::size_t index) {
  const std::lock_guard lock(mutex_);
  const zip_member& member = members_[index];
  member_data& data = data_[index];
  if (data.is_checked) return data.checked;
  in_context("member " + quote(member.name), [&] { check(file, member, data); });
  data.is_checked = true;
  return data.checked;
}

void npz_members::check(std::span<const std::byte> file, const zip_member& member,
                        member_data& data) {
  const std::span<const std::byte> packed = packed_data(file, member);
  if (member.method == zip_stored) {
    if (crc32_of(packed) != member.crc32) {
      malformed("data does not have the CRC-32 of its directory");
    }
    data.checked = packed;
    return;
  }
  if (member.bytes > most_ - kept_) {
    unsupported("decompressed members would take " + std::to_string(kept_ + member.bytes) +
                " bytes of memory, more than " + std::to_string(most_) + "; save with numpy.savez");
  }
  auto inflated = std::make_unique_for_overwrite<std::byte[]>(member.bytes);
  inflate_all(packed, {inflated.get(), member.bytes}, member.crc32);
  data.inflated = std::move(inflated);
  data.checked = {data.inflated.get(), member.bytes};
  kept_ += member.bytes;
}

}  // namespace samebits::tensor_file
