// cuBLASLt, loaded at run time, with K unsplit: D = A * W^T in rows.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace samebits::device_tests {

/// The functions that the witness calls. SAMEBITS_CUBLASLT names the library, else the loader's.
class cublaslt {
 public:
  cublaslt() {
    const char* chosen = std::getenv("SAMEBITS_CUBLASLT");
    for (const char* name : {chosen, "libcublasLt.so.13", "libcublasLt.so.12"}) {
      if (library_ == nullptr && name != nullptr) library_ = dlopen(name, RTLD_NOW);
    }
    if (library_ == nullptr) throw std::runtime_error("cuBLASLt cannot be loaded");
    load(create, "cublasLtCreate");
    load(desc_create, "cublasLtMatmulDescCreate");
    load(desc_destroy, "cublasLtMatmulDescDestroy");
    load(desc_set, "cublasLtMatmulDescSetAttribute");
    load(layout_create, "cublasLtMatrixLayoutCreate");
    load(layout_destroy, "cublasLtMatrixLayoutDestroy");
    load(preference_create, "cublasLtMatmulPreferenceCreate");
    load(preference_destroy, "cublasLtMatmulPreferenceDestroy");
    load(preference_set, "cublasLtMatmulPreferenceSetAttribute");
    load(heuristic, "cublasLtMatmulAlgoGetHeuristic");
    load(config_get, "cublasLtMatmulAlgoConfigGetAttribute");
    load(matmul, "cublasLtMatmul");
    load(version, "cublasLtGetVersion");
    if (create(&handle) != CUBLAS_STATUS_SUCCESS) throw std::runtime_error("cublasLtCreate");
  }

  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  cublasStatus_t (*desc_set)(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*,
                             std::size_t) = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  cublasStatus_t (*preference_set)(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                   const void*, std::size_t) = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  cublasStatus_t (*config_get)(const cublasLtMatmulAlgo_t*, cublasLtMatmulAlgoConfigAttributes_t,
                               void*, std::size_t, std::size_t*) = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  cublasLtHandle_t handle = nullptr;

 private:
  template <class Function>
  void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) throw std::runtime_error(std::string("cuBLASLt has no ") + name);
  }

  void* library_ = nullptr;
};

/// A product: rows of A [m, k] by rows of W [n, k] (or columns of B [k, n]) into D [m, n] in fp32,
/// all dense in rows, on the device.
struct lt_product {
  std::int64_t m, n, k;
  cudaDataType_t a_type, w_type;
  bool b_rows;  ///< W is B [k, n]; 16-bit operands alone
  bool fast;    ///< FP8: fast accumulation
};

/// Empty where it was computed, else why not.
inline std::string multiply(const cublaslt& lt, const lt_product& p, const void* a, const void* w,
                            float* d, void* workspace, std::size_t workspace_bytes) {
  // In columns, as the library sees memory: D^T [n, m] = W [n, k] * A^T [k, m].
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t w_layout = nullptr;
  cublasLtMatrixLayout_t a_layout = nullptr;
  cublasLtMatrixLayout_t d_layout = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  lt.desc_create(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const cublasOperation_t turned = p.b_rows ? CUBLAS_OP_N : CUBLAS_OP_T;
  const cublasOperation_t plain = CUBLAS_OP_N;
  const std::int8_t fast = p.fast ? 1 : 0;
  lt.desc_set(desc, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned);
  lt.desc_set(desc, CUBLASLT_MATMUL_DESC_TRANSB, &plain, sizeof plain);
  lt.desc_set(desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
  const auto size = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  if (p.b_rows) {
    lt.layout_create(&w_layout, p.w_type, size(p.n), size(p.k), p.n);
  } else {
    lt.layout_create(&w_layout, p.w_type, size(p.k), size(p.n), p.k);
  }
  lt.layout_create(&a_layout, p.a_type, size(p.k), size(p.m), p.k);
  lt.layout_create(&d_layout, CUDA_R_32F, size(p.n), size(p.m), p.n);
  lt.preference_create(&preference);
  lt.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                    sizeof workspace_bytes);
  // no scheme that reduces parts of K, and below no algorithm whose K is split
  const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE;
  lt.preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                    sizeof schemes);
  constexpr int most = 16;
  cublasLtMatmulHeuristicResult_t found[most];
  int count = 0;
  cublasStatus_t status = lt.heuristic(lt.handle, desc, w_layout, a_layout, d_layout, d_layout,
                                       preference, most, found, &count);
  std::string why;
  const cublasLtMatmulAlgo_t* chosen = nullptr;
  for (int i = 0; i < count && chosen == nullptr; ++i) {
    std::int32_t parts = 0;
    std::size_t written = 0;
    lt.config_get(&found[i].algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts, &written);
    if (found[i].state == CUBLAS_STATUS_SUCCESS && parts <= 1) chosen = &found[i].algo;
  }
  if (chosen == nullptr) {
    why = "no algorithm without split K: status " + std::to_string(static_cast<int>(status)) +
          ", " + std::to_string(count) + " offered";
  } else {
    const float one = 1;
    const float zero = 0;
    status = lt.matmul(lt.handle, desc, &one, w, w_layout, a, a_layout, &zero, d, d_layout, d,
                       d_layout, chosen, workspace, workspace_bytes, nullptr);
    if (status != CUBLAS_STATUS_SUCCESS) {
      why = "cublasLtMatmul: status " + std::to_string(static_cast<int>(status));
    }
  }
  lt.preference_destroy(preference);
  for (cublasLtMatrixLayout_t layout : {w_layout, a_layout, d_layout}) lt.layout_destroy(layout);
  lt.desc_destroy(desc);
  return why;
}

}  // namespace samebits::device_tests
