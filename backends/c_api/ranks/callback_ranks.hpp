// callback_ranks: a C communicator as a samebits::communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "samebits/c/ranks.h"
#include "samebits/communicator.hpp"
#include "samebits/error.hpp"

namespace samebits::c_api {

/// Calls the functions of a samebits_communicator. Lives as long as one call of the C interface.
class callback_ranks final : public communicator {
 public:
  /// @throws invalid_argument, naming the field, if `ranks` is null or a field is not allowed.
  explicit callback_ranks(const samebits_communicator* ranks)
      : ranks_(read(&required(ranks, "ranks"), "ranks")),
        space_(enumerator<memory_space>(ranks_.memory, "ranks", ".memory")) {
    if (ranks_.size < 1) {
      throw invalid_argument("ranks.size: must be >= 1, got " + std::to_string(ranks_.size));
    }
    if (ranks_.rank < 0 || ranks_.rank >= ranks_.size) {
      throw invalid_argument("ranks.rank: must be in 0 .. size - 1, got " +
                             std::to_string(ranks_.rank) + " of " + std::to_string(ranks_.size));
    }
    if (ranks_.size == 1 && space_ == memory_space::host) return;
    required(ranks_.all_reduce_max, "ranks.all_reduce_max");
    required(ranks_.all_gather, "ranks.all_gather");
    required(ranks_.all_to_all, "ranks.all_to_all");
  }

  [[nodiscard]] int rank() const override { return ranks_.rank; }
  [[nodiscard]] int size() const override { return ranks_.size; }
  [[nodiscard]] memory_space space() const override { return space_; }
  [[nodiscard]] void* stream() const override { return ranks_.stream; }

  void all_reduce_max(std::span<std::uint32_t> words) override {
    if (ranks_.all_reduce_max == nullptr) return;
    check(ranks_.all_reduce_max(ranks_.user, words.data(), words.size()), "all_reduce_max");
  }
  void all_gather(std::span<const std::byte> sent, std::span<std::byte> received) override {
    exchange(ranks_.all_gather, sent, received, "all_gather");
  }
  void all_to_all(std::span<const std::byte> sent, std::span<std::byte> received) override {
    exchange(ranks_.all_to_all, sent, received, "all_to_all");
  }

 private:
  static void check(std::int32_t status, const char* operation) {
    if (status == 0) return;
    throw callback_failed("ranks." + std::string(operation) + ": the caller's function returned " +
                          std::to_string(status));
  }

  void exchange(samebits_exchange_function function, std::span<const std::byte> sent,
                std::span<std::byte> received, const char* operation) const {
    if (function == nullptr) {
      single_rank().all_gather(sent, received);
      return;
    }
    check(function(ranks_.user, sent.data(), sent.size(), received.data(), received.size()),
          operation);
  }

  samebits_communicator ranks_;
  memory_space space_;
};

}  // namespace samebits::c_api
