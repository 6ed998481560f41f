// The members of a zip archive, from its central directory.
//
//   [local header, name, extra, data] ... [central directory: one entry a member] [end record]
//
// An archive with more than 65535 members or 4 GiB has a ZIP64 end record before the end record.
//
// Source: PKWARE APPNOTE.TXT 6.3.10, §4.3.7 (local header), §4.3.12 (central directory), §4.3.14 to
// §4.3.16 (end records), §4.5.3 (ZIP64 extra field).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

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

}  // namespace samebits::tensor_file
