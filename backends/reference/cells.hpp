// Cells: loads and stores codes of one width, and the random bits of an index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "numerics/bits/random.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/types.hpp"

namespace samebits::backends {

/// Loads and stores codes of a width known at compile time. Uses memcpy because views need no
/// alignment.
template <int Bits>
struct cell {
  using storage = typename samebits::detail::storage_of<Bits>::type;
  static storage load(const std::byte* p) {
    storage s;
    std::memcpy(&s, p, sizeof s);
    return s;
  }
  static void store(std::byte* p, storage s) { std::memcpy(p, &s, sizeof s); }
};

/// Calls f(Code{}), Code being the unsigned integer that holds a code of the format.
template <class Function>
void with_code_of(format_id format, const Function& f) {
  switch (spec_of(format).storage_bits) {
    case 8: return f(std::uint8_t{});
    case 16: return f(std::uint16_t{});
    default: return f(std::uint32_t{});
  }
}

/// The random bits of consecutive indices. One Philox block is computed once for all of its fields.
class random_sequence {
 public:
  explicit random_sequence(const random_stream& r) : stream_(r) {}

  template <class Word>
  Word dither(std::uint64_t index) {
    const auto per_block = static_cast<std::uint64_t>(numerics::fields_per_block(stream_.bits));
    const std::uint64_t block = index / per_block;
    if (!filled_ || block != number_) {
      block_ = numerics::philox4x32_10(stream_.seed, stream_.stream, block);
      number_ = block;
      filled_ = true;
    }
    const auto field = static_cast<int>(index % per_block);
    return numerics::align_random<Word>(numerics::field_of(block_, field, stream_.bits),
                                        stream_.bits);
  }

 private:
  random_stream stream_;
  numerics::philox_block block_{};
  std::uint64_t number_ = 0;
  bool filled_ = false;
};

}  // namespace samebits::backends
