#include "backends/cuda/matmul/cublaslt.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "backends/cuda/common/error.hpp"

namespace samebits::cuda {
namespace {

cudaDataType_t type_of(format_id f) {
  switch (f) {
    case format_id::bf16: return CUDA_R_16BF;
    case format_id::fp16: return CUDA_R_16F;
    case format_id::e4m3: return CUDA_R_8F_E4M3;
    case format_id::e5m2: return CUDA_R_8F_E5M2;
    default: return CUDA_R_32F;
  }
}

/// A matrix as the library sees memory, in columns.
struct columns {
  std::int64_t rows, cols, pitch;
};

/// Whether the matrix is dense in columns rather than in rows; a dense column wins if both hold.
bool is_by_columns(const const_matrix_view& v) {
  return v.row_stride == 1 && (v.cols == 1 || v.col_stride >= v.rows);
}
columns columns_of(const const_matrix_view& v, bool by_columns) {
  return by_columns ? columns{v.rows, v.cols, std::max(v.col_stride, v.rows)}
                    : columns{v.cols, v.rows, std::max(v.row_stride, v.cols)};
}
/// A dense row wins, as FP8 needs it.
bool a_is_turned(const const_matrix_view& a) { return is_by_columns(a) && a.col_stride != 1; }

std::string text_of(cublasStatus_t status) { return std::to_string(static_cast<int>(status)); }

/// The library's mode of scales; `t` has lines of the operand in rows.
cublasLtMatmulMatrixScale_t mode_of(const tile_shape& t) {
  if (t.rows == 128) return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
  if (t.rows == 0) return CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  return t.cols == 128 ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F
                       : CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
}

}  // namespace

template <class Function>
void cublaslt::load(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library_, name));
  if (function == nullptr) throw unsupported(std::string("cuBLASLt: has no ") + name);
}

cublaslt::cublaslt() {
  constexpr const char* names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
  if (const char* chosen = std::getenv("SAMEBITS_CUBLASLT")) {
    library_ = dlopen(chosen, RTLD_NOW);
    if (library_ == nullptr) throw unsupported(std::string("SAMEBITS_CUBLASLT: ") + dlerror());
  }
  for (const int mode : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW}) {
    for (const char* name : names) {
      if (library_ == nullptr) library_ = dlopen(name, mode);
    }
  }
  if (library_ == nullptr) {
    throw unsupported(
        "cuBLASLt: libcublasLt.so.13 and .12 cannot be loaded; set SAMEBITS_CUBLASLT to its file");
  }
  decltype(&cublasLtCreate) create = nullptr;
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
  if (const cublasStatus_t status = create(&handle); status != CUBLAS_STATUS_SUCCESS) {
    throw unsupported("cuBLASLt: cublasLtCreate: status " + text_of(status));
  }
}

const cublaslt& library_of_current_device() {
  static std::mutex mutex;
  // never destroyed: the driver may be gone by then
  static auto& of_device = *new std::map<int, std::unique_ptr<cublaslt>>;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  auto& library = of_device[device];
  if (library == nullptr) library = std::make_unique<cublaslt>();
  return *library;
}

template <class Value>
void lt_product::set(cublasLtMatmulDescAttributes_t attribute, const Value& value) const {
  const cublasStatus_t status = lt_.desc_set(of_.product, attribute, &value, sizeof value);
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw unsupported("cuBLASLt " + std::to_string(lt_.version()) + ": attribute " +
                    std::to_string(static_cast<int>(attribute)) + ": status " + text_of(status));
}

void lt_product::set_scales(const backends::scale_source& s, bool of_a) const {
  if (s.values.data == nullptr) return;
  set(of_a ? CUBLASLT_MATMUL_DESC_B_SCALE_MODE : CUBLASLT_MATMUL_DESC_A_SCALE_MODE,
      mode_of(of_a ? s.tile : tile_shape{s.tile.cols, s.tile.rows}));
  set(of_a ? CUBLASLT_MATMUL_DESC_B_SCALE_POINTER : CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
      s.values.data);
}

// Memory in columns holds D^T = B^T * A^T: B is the library's first operand.
lt_product::descriptors::descriptors(const cublaslt& library, const backends::matmul_call& call)
    : lt(library) {
  const auto layout = [&](cublasLtMatrixLayout_t& to, format_id format, const columns& c) {
    return lt.layout_create(&to, type_of(format), static_cast<std::uint64_t>(c.rows),
                            static_cast<std::uint64_t>(c.cols), c.pitch) == CUBLAS_STATUS_SUCCESS;
  };
  complete = lt.desc_create(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
             layout(b, call.b.format, columns_of(call.b, is_by_columns(call.b))) &&
             layout(a, call.a.format, columns_of(call.a, a_is_turned(call.a))) &&
             layout(d, call.d.format, columns_of(call.d, false));
}

lt_product::descriptors::~descriptors() {
  for (cublasLtMatrixLayout_t layout : {a, b, d}) {
    if (layout != nullptr) lt.layout_destroy(layout);
  }
  if (product != nullptr) lt.desc_destroy(product);
}

lt_product::lt_product(const cublaslt& lt, const backends::matmul_call& call)
    : lt_(lt), call_(call), of_(lt, call) {
  if (!of_.complete) {
    throw unsupported("cuBLASLt " + std::to_string(lt.version()) +
                      ": cannot describe this product");
  }
  const bool fp8 = storage_bytes(call.a.format) == 1;
  set(CUBLASLT_MATMUL_DESC_TRANSA, is_by_columns(call.b) ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, a_is_turned(call.a) ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_FAST_ACCUM,
      static_cast<std::int8_t>(fp8 && call.sum.promotion == 0 ? 1 : 0));
  set_scales(call.b_scales, false);
  set_scales(call.a_scales, true);
}

std::vector<lt_algorithm> lt_product::algorithms(std::size_t workspace_bytes) const {
  cublasLtMatmulPreference_t preference = nullptr;
  lt_.preference_create(&preference);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
    lt_.preference_set(preference, what, &value, sizeof value);
  };
  using backends::alignment_of;
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(call_.b.data));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(call_.a.data));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(call_.d.data));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(call_.d.data));
  // no scheme that reduces parts of K, and below no algorithm whose K is split
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE));
  constexpr int maximum = 32;
  cublasLtMatmulHeuristicResult_t found[maximum];
  int count = 0;
  const cublasStatus_t status = lt_.heuristic(lt_.handle, of_.product, of_.b, of_.a, of_.d, of_.d,
                                              preference, maximum, found, &count);
  lt_.preference_destroy(preference);

  std::vector<lt_algorithm> all;
  for (int i = 0; i < count; ++i) {
    const cublasLtMatmulAlgo_t& algo = found[i].algo;
    const auto number = [&](cublasLtMatmulAlgoConfigAttributes_t what, std::size_t bytes = 4) {
      std::uint32_t value = 0;
      std::size_t written = 0;
      lt_.config_get(&algo, what, &value, bytes, &written);
      return value;
    };
    const bool split = number(CUBLASLT_ALGO_CONFIG_SPLITK_NUM) > 1 ||
                       number(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) != 0;
    if (found[i].state != CUBLAS_STATUS_SUCCESS || split) continue;
    const auto text = [&](const char* name, cublasLtMatmulAlgoConfigAttributes_t what,
                          std::size_t bytes = 4) {
      return std::string(", ") + name + " " + std::to_string(number(what, bytes));
    };
    all.push_back({algo, "cuBLASLt " + std::to_string(lt_.version()) +
                             text("algorithm", CUBLASLT_ALGO_CONFIG_ID) +
                             text("tile", CUBLASLT_ALGO_CONFIG_TILE_ID) +
                             text("stages", CUBLASLT_ALGO_CONFIG_STAGES_ID) +
                             text("inner", CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2) +
                             text("cluster", CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2) +
                             text("swizzle", CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING) +
                             text("option", CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION)});
  }
  if (all.empty()) {
    throw unsupported("cuBLASLt " + std::to_string(lt_.version()) +
                      ": has no algorithm without split K for this product: status " +
                      text_of(status) + ", " + std::to_string(count) + " offered");
  }
  return all;
}

void lt_product::run(const cublasLtMatmulAlgo_t& by, const backends::matmul_call& on,
                     void* workspace, std::size_t workspace_bytes, cudaStream_t stream) const {
  const float one = 1, zero = 0;
  void* d = on.d.data;
  const cublasStatus_t status =
      lt_.matmul(lt_.handle, of_.product, &one, on.b.data, of_.b, on.a.data, of_.a, &zero, d, of_.d,
                 d, of_.d, &by, workspace, workspace_bytes, stream);
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw cuda_error("cublasLtMatmul: status " + text_of(status), static_cast<int>(status));
  }
}

}  // namespace samebits::cuda
