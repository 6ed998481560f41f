// Gradients for tests of the loss scaler of a GPU, and reports as tuples.
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <cstdint>
#include <random>
#include <span>
#include <tuple>
#include <vector>

#include "device/device_copy.hpp"
#include "numerics/loss_scale/decide.hpp"
#include "samebits/device_loss_scaler.hpp"
#include "samebits/samebits.hpp"

namespace samebits::support {

using engine = std::mt19937_64;

/// fp16 gradients on the host and the device: one long tensor, a short and an empty one.
class gradients {
 public:
  gradients() : copy_(codes_.data(), codes_.size() * 2) {}

  /// Numbers that differ from step to step; sometimes one is Inf or NaN, as the scale grows more
  /// often.
  void draw(engine& random, double scale) {
    for (std::uint16_t& code : codes_) code = static_cast<std::uint16_t>(random() & 0xBBFFu);
    const bool overflow = scale > 0x1p18 && random() % 2 == 0;
    if (overflow || random() % 40 == 0) {
      codes_[random() % codes_.size()] = random() % 4 == 0 ? 0x7FFF : 0xFC00;
    }
    check_cuda(cudaMemcpy(copy_.data(), codes_.data(), codes_.size() * 2, cudaMemcpyHostToDevice),
               "gradients to the device");
  }
  void download() { copy_.copy_back(); }

  [[nodiscard]] tensor_list on_host() { return list(codes_.data(), memory_space::host); }
  [[nodiscard]] tensor_list on_device() {
    return list(static_cast<std::uint16_t*>(copy_.data()), memory_space::device);
  }
  std::vector<std::uint16_t>& codes() { return codes_; }

 private:
  static tensor_list list(std::uint16_t* first, memory_space space) {
    const auto tensor = [&](std::int64_t at, std::int64_t count) {
      return matrix_view{
          count == 0 ? nullptr : first + at, format_id::fp16, 1, count, count, 1, space};
    };
    const matrix_view views[] = {tensor(0, 20'000), tensor(0, 0), tensor(20'000, 24)};
    return tensor_list(std::span<const matrix_view>(views));
  }

  std::vector<std::uint16_t> codes_ = std::vector<std::uint16_t>(20'024);
  guarded_copy copy_;
};

inline auto fields(const step_report& r) {
  return std::tuple(r.step, r.applied_steps, std::bit_cast<std::uint64_t>(r.scale),
                    std::bit_cast<std::uint64_t>(r.norm), r.first_bad, r.bad_rank,
                    std::bit_cast<std::uint32_t>(r.grad_mul), r.amax_bits, r.exponent, r.applied,
                    r.stop, static_cast<int>(r.cause), static_cast<int>(r.change));
}

template <class T>
T downloaded(const T* device) {
  T value;
  check_cuda(cudaMemcpy(&value, device, sizeof(T), cudaMemcpyDeviceToHost), "from the device");
  return value;
}

}  // namespace samebits::support
