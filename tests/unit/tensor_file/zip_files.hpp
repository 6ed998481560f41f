// Zip archives made by the tests, also wrong ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support.hpp"

namespace samebits::tensor_file::testing {

inline std::uint32_t crc32_by_definition(std::string_view data) {
  std::uint32_t crc = 0xffffffff;
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int k = 0; k < 8; ++k) crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
  }
  return ~crc;
}

/// A deflate stream of blocks that are not compressed [RFC 1951, §3.2.4].
inline std::string deflated(std::string_view data) {
  constexpr std::size_t most = 0xffff;
  std::string stream;
  do {
    const std::string_view block = data.substr(0, most);
    data.remove_prefix(block.size());
    stream += static_cast<char>(data.empty() ? 1 : 0);
    stream += little_endian(block.size(), 2) + little_endian(~block.size() & 0xffff, 2);
    stream += block;
  } while (!data.empty());
  return stream;
}

/// A member of an archive. The tests change single fields of it.
struct zip_part {
  std::string name;
  std::string data;  ///< as in the file
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
  int method = 0;
  int flags = 0;
  int local_method = 0;
  std::string local_name = {};
  std::string local_extra = {};
  std::string extra = {};
  std::uint64_t packed_bytes = 0;
  std::int64_t moved = 0;  ///< added to the offset of the local header in the directory
};

inline zip_part stored_part(std::string name, std::string_view content) {
  zip_part part{name, std::string(content), content.size(), crc32_by_definition(content)};
  part.local_name = name;
  part.packed_bytes = content.size();
  return part;
}

inline zip_part deflated_part(std::string name, std::string_view content) {
  zip_part part = stored_part(std::move(name), content);
  part.data = deflated(content);
  part.packed_bytes = part.data.size();
  part.method = part.local_method = 8;
  return part;
}

inline std::string local_header(const zip_part& part) {
  return "PK\x03\x04" + little_endian(20, 2) + little_endian(static_cast<unsigned>(part.flags), 2) +
         little_endian(static_cast<unsigned>(part.local_method), 2) + little_endian(0, 4) +
         little_endian(part.crc, 4) + little_endian(part.data.size(), 4) +
         little_endian(part.bytes, 4) + little_endian(part.local_name.size(), 2) +
         little_endian(part.local_extra.size(), 2) + part.local_name + part.local_extra;
}

inline std::string directory_entry(const zip_part& part, std::uint64_t local) {
  local += static_cast<std::uint64_t>(part.moved);
  return "PK\x01\x02" + little_endian(20, 2) + little_endian(20, 2) +
         little_endian(static_cast<unsigned>(part.flags), 2) +
         little_endian(static_cast<unsigned>(part.method), 2) + little_endian(0, 4) +
         little_endian(part.crc, 4) + little_endian(part.packed_bytes, 4) +
         little_endian(part.bytes, 4) + little_endian(part.name.size(), 2) +
         little_endian(part.extra.size(), 2) + little_endian(0, 2) + little_endian(0, 2) +
         little_endian(0, 2) + little_endian(0, 4) + little_endian(local, 4) + part.name +
         part.extra;
}

/// The end record for a directory of this size at this offset.
inline std::string end_record(std::uint64_t entries, std::uint64_t size, std::uint64_t offset,
                              std::string_view comment = "") {
  return "PK\x05\x06" + little_endian(0, 4) + little_endian(entries, 2) +
         little_endian(entries, 2) + little_endian(size, 4) + little_endian(offset, 4) +
         little_endian(comment.size(), 2) + std::string(comment);
}

struct zip_layout {
  std::string data;       ///< local headers and data
  std::string directory;  ///< entries
};

inline zip_layout layout_of(const std::vector<zip_part>& parts) {
  zip_layout layout;
  for (const zip_part& part : parts) {
    layout.directory += directory_entry(part, layout.data.size());
    layout.data += local_header(part) + part.data;
  }
  return layout;
}

inline std::string zip_of(const std::vector<zip_part>& parts, std::string_view comment = "") {
  const zip_layout layout = layout_of(parts);
  return layout.data + layout.directory +
         end_record(parts.size(), layout.directory.size(), layout.data.size(), comment);
}

}  // namespace samebits::tensor_file::testing
