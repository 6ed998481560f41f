// cuBLASLt, loaded at run time, with K unsplit: D = A * W^T in rows, its algorithms one by one.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

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

/// Dequantization scales of an operand, on the device; without data: 1.
struct lt_scales {
  cublasLtMatmulMatrixScale_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  const float* data = nullptr;
};

/// A product: rows of A [m, k] by rows of W [n, k] (or columns of B [k, n]) into D [m, n] in fp32,
/// all dense in rows, on the device.
struct lt_product {
  std::int64_t m, n, k;
  cudaDataType_t a_type, w_type;
  bool b_rows;  ///< W is B [k, n]
  bool fast;    ///< FP8: fast accumulation
  lt_scales a_scales = {};
  lt_scales w_scales = {};
  bool a_columns = false;  ///< A is stored [k, m]
};

/// An algorithm, and the numbers by which the library configures it.
struct lt_algorithm {
  cublasLtMatmulAlgo_t algo;
  std::string text;
};

/// One product's descriptors, and the algorithms that the heuristic offers for it.
class lt_call {
 public:
  lt_call(const cublaslt& lt, const lt_product& p, std::size_t workspace_bytes)
      : lt_(lt), workspace_bytes_(workspace_bytes) {
    describe(p);
    find();
  }
  ~lt_call() {
    for (cublasLtMatrixLayout_t layout : {w_layout_, a_layout_, d_layout_}) {
      lt_.layout_destroy(layout);
    }
    lt_.desc_destroy(desc_);
  }
  lt_call(const lt_call&) = delete;
  lt_call& operator=(const lt_call&) = delete;

  /// Those that do not split K, the library's best first.
  [[nodiscard]] const std::vector<lt_algorithm>& algorithms() const { return algorithms_; }

  /// Why there is none.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  /// Empty where it was computed, else why not.
  std::string run(const lt_algorithm& by, const void* a, const void* w, float* d,
                  void* workspace) const {
    const float one = 1;
    const float zero = 0;
    const cublasStatus_t status =
        lt_.matmul(lt_.handle, desc_, &one, w, w_layout_, a, a_layout_, &zero, d, d_layout_, d,
                   d_layout_, &by.algo, workspace, workspace_bytes_, nullptr);
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    return "cublasLtMatmul: status " + std::to_string(static_cast<int>(status));
  }

 private:
  /// In columns, as the library sees memory: D^T [n, m] = W [n, k] * A^T [k, m].
  void describe(const lt_product& p) {
    lt_.desc_create(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.b_rows ? CUBLAS_OP_N : CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.a_columns ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(p.fast ? 1 : 0));
    if (p.w_scales.data != nullptr) {
      set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, p.w_scales.mode);
      set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, p.w_scales.data);
    }
    if (p.a_scales.data != nullptr) {
      set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, p.a_scales.mode);
      set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, p.a_scales.data);
    }
    const auto layout = [this](cublasLtMatrixLayout_t& to, cudaDataType_t type, std::int64_t rows,
                               std::int64_t cols) {
      lt_.layout_create(&to, type, static_cast<std::uint64_t>(rows),
                        static_cast<std::uint64_t>(cols), rows);
    };
    layout(w_layout_, p.w_type, p.b_rows ? p.n : p.k, p.b_rows ? p.k : p.n);
    layout(a_layout_, p.a_type, p.a_columns ? p.m : p.k, p.a_columns ? p.k : p.m);
    layout(d_layout_, CUDA_R_32F, p.n, p.m);
  }

  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    const cublasStatus_t status = lt_.desc_set(desc_, attribute, &value, sizeof value);
    if (status != CUBLAS_STATUS_SUCCESS) {
      refusal_ = "attribute " + std::to_string(static_cast<int>(attribute)) + ": status " +
                 std::to_string(static_cast<int>(status));
    }
  }

  void find() {
    if (!refusal_.empty()) return;
    cublasLtMatmulPreference_t preference = nullptr;
    lt_.preference_create(&preference);
    lt_.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes_,
                       sizeof workspace_bytes_);
    // no scheme that reduces parts of K, and below no algorithm whose K is split
    const std::uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE;
    lt_.preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                       sizeof schemes);
    constexpr int maximum = 32;
    cublasLtMatmulHeuristicResult_t found[maximum];
    int count = 0;
    const cublasStatus_t status = lt_.heuristic(lt_.handle, desc_, w_layout_, a_layout_, d_layout_,
                                                d_layout_, preference, maximum, found, &count);
    lt_.preference_destroy(preference);
    for (int i = 0; i < count; ++i) {
      const cublasLtMatmulAlgo_t& algo = found[i].algo;
      const bool split = config(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) > 1 ||
                         config(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) != 0;
      if (found[i].state == CUBLAS_STATUS_SUCCESS && !split) {
        algorithms_.push_back({algo, text_of(algo)});
      }
    }
    if (algorithms_.empty()) {
      refusal_ = "no algorithm without split K: status " +
                 std::to_string(static_cast<int>(status)) + ", " + std::to_string(count) +
                 " offered";
    }
  }

  [[nodiscard]] std::uint32_t config(const cublasLtMatmulAlgo_t& algo,
                                     cublasLtMatmulAlgoConfigAttributes_t what) const {
    std::uint32_t value = 0;
    std::size_t written = 0;
    const bool half = what == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID ||
                      what == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
    lt_.config_get(&algo, what, &value, half ? 2 : 4, &written);
    return value;
  }

  [[nodiscard]] std::string text_of(const cublasLtMatmulAlgo_t& algo) const {
    const auto number = [&](cublasLtMatmulAlgoConfigAttributes_t what) {
      return std::to_string(config(algo, what));
    };
    return "algorithm " + number(CUBLASLT_ALGO_CONFIG_ID) + ", tile " +
           number(CUBLASLT_ALGO_CONFIG_TILE_ID) + ", stages " +
           number(CUBLASLT_ALGO_CONFIG_STAGES_ID) + ", inner " +
           number(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID) + ", cluster " +
           number(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID) + ", swizzle " +
           number(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING) + ", option " +
           number(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION);
  }

  const cublaslt& lt_;
  std::size_t workspace_bytes_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t w_layout_ = nullptr;
  cublasLtMatrixLayout_t a_layout_ = nullptr;
  cublasLtMatrixLayout_t d_layout_ = nullptr;
  std::vector<lt_algorithm> algorithms_;
  std::string refusal_;
};

}  // namespace samebits::device_tests
