// NumPy's .npz files: zip archives with a .npy file for each array.
//
// numpy.savez stores the members; their elements are read from the mapped file.
// numpy.savez_compressed deflates them; a deflated member is decompressed into memory when its
// elements are first read. The CRC-32 of a member is compared at that moment, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tensor_file/tensor_info.hpp"
#include "tensor_file/zip/zip_directory.hpp"

namespace samebits::tensor_file {

/// Reads the directory and the .npy header of each member. The name of a tensor is that of its member
/// without ".npy". Members that are not read have `unread`
/// set: other files than .npy, element types that are not read, encrypted members, other
/// compression methods than stored and deflated, and deflated members if this build has no zlib.
/// @throws file_error  (malformed) if the archive or the header of a member breaks a rule
/// @throws file_error  (unsupported) if the archive has several parts
file_contents parse_npz(std::span<const std::byte> file);

/// The members of an archive, checked and decompressed on demand. Several threads may call bytes()
/// at once.
class npz_members {
 public:
  /// @param most  bytes of decompressed members kept in memory; they are kept until destruction
  explicit npz_members(std::vector<zip_member> members,
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
