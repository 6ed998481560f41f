// Shared by the functions over a communicator: the message of an observation, fingerprints of
// arguments that must be equal, and errors that reach every rank.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/dispatch/refuse.hpp"
#include "numerics/loss_scale/agreement.hpp"
#include "samebits/communicator.hpp"
#include "samebits/core/loss_scaling.hpp"

namespace samebits::backends {

/// 64-bit FNV-1a: an accidental difference goes unnoticed in at most one of 2^32 cases.
class fingerprint {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) {
      hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x00000100000001B3u;
    }
  }
  void add(std::uint64_t value) {
    for (int i = 0; i < 8; ++i, value >>= 8) hash_ = (hash_ ^ (value & 0xFF)) * 0x100000001B3u;
  }
  [[nodiscard]] std::uint32_t folded() const {
    return static_cast<std::uint32_t>(hash_ ^ (hash_ >> 32));
  }

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325u;
};

struct device_rank_functions;  // backends/ranks/rank_functions.hpp

/// A communicator's operations on host memory. For a communicator on device memory, words are
/// copied to the device and back on its stream; each operation waits for them.
class host_ranks {
 public:
  /// @throws unsupported  for a communicator on device memory if no CUDA backend can run
  explicit host_ranks(communicator& ranks);

  [[nodiscard]] int rank() const { return ranks_.rank(); }
  [[nodiscard]] int size() const { return ranks_.size(); }
  void all_reduce_max(std::span<std::uint32_t> words);
  void all_gather(std::span<const std::byte> sent, std::span<std::byte> received);

 private:
  communicator& ranks_;
  const device_rank_functions* staged_by_ = nullptr;
};

/// The maxima of the messages of all ranks.
inline numerics::agreement_message largest_message(communicator& ranks,
                                                   const rank_observation& mine,
                                                   std::uint32_t state) {
  host_ranks on_host(ranks);
  auto words = std::bit_cast<std::array<std::uint32_t, numerics::agreement_words>>(
      numerics::message_of(mine, ranks.rank(), state));
  on_host.all_reduce_max(words);
  return std::bit_cast<numerics::agreement_message>(words);
}

/// Runs check() on this rank and replaces `words` by their maxima over all ranks, in one message.
/// If check() throws on any rank, every rank throws: that rank throws the exception of check(), all
/// others throw rank_error. `words` is read after check().
template <class Check>
void check_together(host_ranks& ranks, std::string_view call, std::span<std::uint32_t> words,
                    const Check& check) {
  std::exception_ptr mine;
  try {
    check();
  } catch (...) {
    mine = std::current_exception();
  }
  std::vector<std::uint32_t> message = {numerics::position_word(mine ? ranks.rank() : -1)};
  message.insert(message.end(), words.begin(), words.end());
  ranks.all_reduce_max(message);
  if (mine) std::rethrow_exception(mine);
  require<rank_error>(message[0] == 0, call, ": rank ", numerics::position_of(message[0]),
                      " refused its arguments; its own error says why");
  std::copy(message.begin() + 1, message.end(), words.begin());
}

}  // namespace samebits::backends
