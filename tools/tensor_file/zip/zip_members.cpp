// The data of a zip archive's members: implementation.
#include "tensor_file/zip/zip_members.hpp"

#include <utility>

#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/zip/inflate.hpp"

namespace samebits::tensor_file {

std::string unread_reason(const zip_member& member) {
  if (member.encrypted) return "encrypted";
  if (member.method == zip_stored) return {};
  if (member.method != zip_deflated) {
    return "compressed by method " + std::to_string(member.method) +
           ", which is not read; save it without compression";
  }
  if (!can_inflate()) return "deflated, and this build has no zlib; save it without compression";
  return {};
}

std::span<const std::byte> packed_data(std::span<const std::byte> file, const zip_member& member) {
  return file.subspan(member.offset, member.packed_bytes);
}

zip_members::zip_members(std::vector<zip_member> members, std::uint64_t most)
    : members_(std::move(members)), data_(members_.size()), most_(most) {}

std::span<const std::byte> zip_members::bytes(std::span<const std::byte> file, std::size_t index) {
  const std::lock_guard lock(mutex_);
  const zip_member& member = members_[index];
  member_data& data = data_[index];
  if (data.is_checked) return data.checked;
  in_context("member " + quote(member.name), [&] { check(file, member, data); });
  data.is_checked = true;
  return data.checked;
}

void zip_members::check(std::span<const std::byte> file, const zip_member& member,
                        member_data& data) {
  const std::span<const std::byte> packed = packed_data(file, member);
  if (member.method == zip_stored) {
    if (member.has_crc32 && crc32_of(packed) != member.crc32) {
      malformed("data does not have the CRC-32 of its directory");
    }
    data.checked = packed;
    return;
  }
  if (member.bytes > most_ - kept_) {
    unsupported("decompressed members would take " + std::to_string(kept_ + member.bytes) +
                " bytes of memory, more than " + std::to_string(most_) +
                "; save it without compression");
  }
  auto inflated = std::make_unique_for_overwrite<std::byte[]>(member.bytes);
  inflate_all(packed, {inflated.get(), member.bytes}, member.crc32);
  data.inflated = std::move(inflated);
  data.checked = {data.inflated.get(), member.bytes};
  kept_ += member.bytes;
}

}  // namespace samebits::tensor_file
