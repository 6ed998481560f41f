// scaler_policy: a loss-scaling policy as a kernel argument, so that kernels serve all policies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <variant>

#include "numerics/loss_scale/decide.hpp"
#include "samebits/loss_scaler.hpp"

namespace samebits::cuda {

/// The settings of any policy, and its numerics::resident_scaler in device memory.
class scaler_policy {
 public:
  scaler_policy(const scaling_settings& settings, std::byte* scaler)
      : index_(settings.index()), scaler_(scaler) {
    std::visit(
        [&](const auto& s) {
          static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(s)>>);
          std::memcpy(settings_, &s, sizeof s);
        },
        settings);
  }

  /// f(settings, resident scaler)
  template <std::size_t I = 0, class Function>
  __device__ __forceinline__ void visit(const Function& f) const {
    if constexpr (I < std::variant_size_v<scaling_settings>) {
      using settings = std::variant_alternative_t<I, scaling_settings>;
      using state = decltype(numerics::initial_state(std::declval<const settings&>()));
      if (index_ != I) return visit<I + 1>(f);
      f(*reinterpret_cast<const settings*>(settings_),
        *reinterpret_cast<numerics::resident_scaler<state>*>(scaler_));
    }
  }

 private:
  std::size_t index_;  ///< of the settings among those of scaling_settings
  std::byte* scaler_;
  alignas(scaling_settings) std::byte settings_[sizeof(scaling_settings)];
};

}  // namespace samebits::cuda
