// The data of a zip archive's members, checked and decompressed on demand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tensor_file/zip/zip_directory.hpp"

namespace samebits::tensor_file {

/// Why the data of a member is not read: it is encrypted, or compressed by another method than
/// deflate, or deflated and this build has no zlib. Empty if it is read.
std::string unread_reason(const zip_member& member);

/// The data of a member as it is in the file.
std::span<const std::byte> packed_data(std::span<const std::byte> file, const zip_member& member);

/// The members of an archive. Several threads may call bytes() at once.
class zip_members {
 public:
  /// @param members  those whose unread_reason() is empty
  /// @param most  bytes of decompressed members kept in memory; they are kept until destruction
  explicit zip_members(std::vector<zip_member> members,
                       std::uint64_t most = std::uint64_t{1} << 32);

  /// The data of a member: in the file if it is stored, else decompressed.
  /// @param file  the archive
  /// @throws file_error  (malformed) if the data does not have the size and CRC-32 of the directory
  /// @throws file_error  (unsupported) if all members so far would exceed `most`
  std::span<const std::byte> bytes(std::span<const std::byte> file, std::size_t index);

 private:
  struct member_data {
    std::unique_ptr<std::byte[]> inflated;  ///< null for a stored member
    std::span<const std::byte> checked;
    bool is_checked = false;
  };

  void check(std::span<const std::byte> file, const zip_member& member, member_data& data);

  std::mutex mutex_;
  std::vector<zip_member> members_;
  std::vector<member_data> data_;
  std::uint64_t most_;
  std::uint64_t kept_ = 0;
};

}  // namespace samebits::tensor_file
