// Decompresses deflate streams: implementation.
#include "tensor_file/zip/inflate.hpp"

#ifdef SAMEBITS_HAS_ZLIB

#include <zlib.h>

#include <limits>
#include <new>

namespace samebits::tensor_file {
namespace {

/// A deflate stream without a zlib header, decompressed from its start to its end.
class raw_stream {
 public:
  explicit raw_stream(std::span<const std::byte> packed) : packed_(packed) {
    if (::inflateInit2(&state_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~raw_stream() { ::inflateEnd(&state_); }
  raw_stream(const raw_stream&) = delete;
  raw_stream& operator=(const raw_stream&) = delete;
  raw_stream(raw_stream&&) = delete;
  raw_stream& operator=(raw_stream&&) = delete;

  /// Decompresses on until `out` is full or the stream ends; returns the number of bytes written.
  std::size_t read(std::span<std::byte> out) {
    std::size_t written = 0;
    while (!ended_ && written < out.size()) written += step(out.subspan(written));
    return written;
  }

  /// Whether the stream ends here, with the last byte of its input.
  bool ends() {
    std::byte beyond{};
    return read(std::span(&beyond, 1)) == 0 && packed_.empty();
  }

 private:
  // zlib counts in 32 bits, so a step may leave input and room.
  std::size_t step(std::span<std::byte> out) {
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    const std::size_t given = std::min(packed_.size(), most);
    const std::size_t room = std::min(out.size(), most);
    state_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed_.data()));
    state_.avail_in = static_cast<uInt>(given);
    state_.next_out = reinterpret_cast<Bytef*>(out.data());
    state_.avail_out = static_cast<uInt>(room);
    const int result = ::inflate(&state_, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    ended_ = result == Z_STREAM_END;
    if (!ended_ && result != Z_OK && result != Z_BUF_ERROR) malformed("deflated data is broken");
    const std::size_t used = given - state_.avail_in;
    const std::size_t written = room - state_.avail_out;
    packed_ = packed_.subspan(used);
    if (!ended_ && used == 0 && written == 0) malformed("deflated data is cut off");
    return written;
  }

  ::z_stream state_{};
  std::span<const std::byte> packed_;
  bool ended_ = false;
};

}  // namespace

std::uint32_t crc32_of(std::span<const std::byte> bytes) {
  constexpr std::size_t part = std::size_t{1} << 30;
  uLong sum = ::crc32(0, nullptr, 0);
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), part);
    sum = ::crc32(sum, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(size));
    bytes = bytes.subspan(size);
  }
  return static_cast<std::uint32_t>(sum);
}

bool can_inflate() noexcept { return true; }

std::size_t inflate_start(std::span<const std::byte> packed, std::span<std::byte> out) {
  return raw_stream(packed).read(out);
}

void inflate_all(std::span<const std::byte> packed, std::span<std::byte> out, std::uint32_t crc32) {
  raw_stream stream(packed);
  const std::size_t written = stream.read(out);
  malformed_if(written != out.size(), "deflated data has ", written,
               " bytes where the zip directory claims ", out.size());
  if (!stream.ends()) malformed("deflated data is longer than the zip directory claims");
  if (crc32_of(out) != crc32) malformed("deflated data does not have the CRC-32 of its directory");
}

}  // namespace samebits::tensor_file

#else

#include <stdexcept>

namespace samebits::tensor_file {

// The polynomial of zip, bit by bit from the lowest one [APPNOTE §4.4.7].
std::uint32_t crc32_of(std::span<const std::byte> bytes) {
  std::uint32_t table[256];
  for (std::uint32_t i = 0; i < 256; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) table[i] = table[i] >> 1 ^ (table[i] & 1) * 0xedb88320u;
  }
  std::uint32_t sum = 0xffffffff;
  for (const std::byte byte : bytes) {
    sum = sum >> 8 ^ table[(sum ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  }
  return ~sum;
}

bool can_inflate() noexcept { return false; }

std::size_t inflate_start(std::span<const std::byte>, std::span<std::byte>) {
  throw std::logic_error("inflate_start: this build has no zlib");
}

void inflate_all(std::span<const std::byte>, std::span<std::byte>, std::uint32_t) {
  throw std::logic_error("inflate_all: this build has no zlib");
}

}  // namespace samebits::tensor_file

#endif
