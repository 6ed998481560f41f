// The members of a zip archive, from its central directory, and their data, checked and decompressed
// on demand.
//
//   [local header, name, extra, data] ... [central directory: one entry a member] [end record]
//
// An archive with more than 65535 members or 4 GiB has a ZIP64 end record before the end record.
//
// Source: PKWARE APPNOTE.TXT 6.3.10, §4.3.7 (local header), §4.3.12 (central directory), §4.3.14 to
// §4.3.16 (end records), §4.5.3 (ZIP64 extra field).
#pragma once

#include <mutex>

#include "tensor_file/common.hpp"

namespace samebits::tensor_file {

/// How the data of a member is compressed [APPNOTE §4.4.5]. Members may have other methods.
inline constexpr std::uint16_t zip_stored = 0;
inline constexpr std::uint16_t zip_deflated = 8;

struct zip_member {
  std::string name;  ///< UTF-8
  std::uint16_t method = zip_stored;
  bool encrypted = false;
  std::uint32_t crc32 = 0;         ///< of the data before compression
  bool has_crc32 = true;           ///< whether stored data is compared with crc32
  std::uint64_t offset = 0;        ///< of the data in the file
  std::uint64_t packed_bytes = 0;  ///< size of the data in the file
  std::uint64_t bytes = 0;         ///< size before compression
};

/// Reads the directory of a complete archive: the members in the order of the directory.
///
/// Members must not share bytes with each other or with the directory. A deflated member must not
/// claim more than 1032 times its packed size, which is the most that deflate can reach.
///
/// @throws file_error  (malformed) if the archive breaks a rule, or a name is not UTF-8 or occurs
///   twice
/// @throws file_error  (unsupported) if the archive has several parts
std::vector<zip_member> parse_zip(std::span<const std::byte> file);

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
