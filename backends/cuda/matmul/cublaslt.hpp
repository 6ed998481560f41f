// cuBLASLt, loaded at run time: products in device memory with K unsplit, algorithm by algorithm.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/dispatch/calls/matmul.hpp"

namespace samebits::cuda {

/// The library's functions, and a handle of the device that was current first.
class cublaslt {
 public:
  /// Loads the library that SAMEBITS_CUBLASLT names, else version 13 or 12 that the process has
  /// loaded, else the one that the loader finds.
  ///
  /// @throws unsupported if there is none, or the named one cannot be loaded
  cublaslt();
  cublaslt(const cublaslt&) = delete;
  cublaslt& operator=(const cublaslt&) = delete;

  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) config_get = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  cublasLtHandle_t handle = nullptr;

 private:
  template <class Function>
  void load(Function& function, const char* name);

  void* library_ = nullptr;
};

/// The library with the handle of the current device; loaded by the first call.
const cublaslt& library_of_current_device();

/// An algorithm, and the numbers by which the library configures it.
struct lt_algorithm {
  cublasLtMatmulAlgo_t algo;
  std::string text;
};

/// A product's descriptors: D = A * B by the rule call.sum, of which the library's modes follow.
class lt_product {
 public:
  /// @throws unsupported if the library knows no such product
  lt_product(const cublaslt& lt, const backends::matmul_call& call);

  /// The algorithms that the library's heuristic offers and that do not split K, its best first.
  ///
  /// @throws unsupported if there is none
  [[nodiscard]] std::vector<lt_algorithm> algorithms(std::size_t workspace_bytes) const;

  /// Enqueues the product of a call that differs in the addresses of a, b and d alone. Thread-safe.
  ///
  /// @throws cuda_error if the library refuses
  void run(const cublasLtMatmulAlgo_t& by, const backends::matmul_call& on, void* workspace,
           std::size_t workspace_bytes, cudaStream_t stream) const;

 private:
  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) const;
  void set_scales(const backends::scale_source& s, bool of_a) const;

  /// Owner of the descriptors.
  struct descriptors {
    descriptors(const cublaslt& lt, const backends::matmul_call& call);
    ~descriptors();
    descriptors(const descriptors&) = delete;
    descriptors& operator=(const descriptors&) = delete;

    const cublaslt& lt;
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
    bool complete = false;  ///< whether the library made all of them
  };

  const cublaslt& lt_;
  const backends::matmul_call call_;
  const descriptors of_;
};

}  // namespace samebits::cuda
