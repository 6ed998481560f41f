// attention() and attention_backward(): check arguments, plan the GPU's launch and choose a
// backend.
#include "backends/dispatch/calls/attention.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "backends/api/functions/attention_math.hpp"
#include "backends/api/view_checks.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace backends {
namespace {

using shape_of_four = std::array<std::int64_t, 4>;

std::string text_of(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t n : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(n);
  return text + "]";
}

void check_attention_options(const attention_options& o) {
  check_value("kernel", o.kernel, "attention_kernel");
  if (!(o.scale >= 0) || !std::isfinite(o.scale)) {
    throw invalid_argument("scale: must be finite and at least 0, got " + std::to_string(o.scale));
  }
  if (o.multiprocessors < 1) {
    throw invalid_argument("multiprocessors: must be at least 1, got " +
                           std::to_string(o.multiprocessors));
  }
  constexpr int most = numerics::torch_2_11::max_splits;
  if (o.splits < 0 || o.splits > most) {
    throw invalid_argument("splits: must be 0 to " + std::to_string(most) + ", got " +
                           std::to_string(o.splits));
  }
  if (!(o.dropout >= 0 && o.dropout <= 1)) {
    throw invalid_argument("dropout: must be 0 to 1, got " + std::to_string(o.dropout));
  }
  const std::string kernel(name(o.kernel));
  if (o.kernel == attention_kernel::efficient || o.kernel == attention_kernel::flash_3) {
    throw unsupported("kernel: attention of " + kernel + " has no rule");
  }
  if (o.dropout != 0) throw unsupported("dropout: attention with dropout has no rule");
  if (o.splits != 0 && o.kernel != attention_kernel::flash) {
    throw unsupported("splits: attention of " + kernel + " does not split the keys");
  }
}

/// Checks one tensor. Returns the elements that it spans.
std::int64_t check_tensor(const const_tensor_view& t, const char* which, format_id format,
                          std::span<const std::int64_t> shape) {
  const std::string what = std::string(which) + ": ";
  if (t.format != format) {
    throw invalid_argument(what + "format must be " + std::string(name(format)) + ", got " +
                           std::string(name(t.format)));
  }
  if (!std::equal(shape.begin(), shape.end(), t.shape.begin(), t.shape.end())) {
    throw invalid_argument(what + "shape must be " + text_of(shape) + ", got " + text_of(t.shape));
  }
  if (t.strides.size() != t.shape.size()) {
    throw invalid_argument(what + "one stride per axis is expected, got " +
                           std::to_string(t.strides.size()));
  }
  if (t.space != memory_space::host) {
    throw unsupported(what + "attention is computed in host memory only");
  }
  if (t.data == nullptr) throw invalid_argument(what + "data is null");
  std::int64_t last = 0;
  for (std::size_t i = 0; i < t.shape.size(); ++i) {
    std::int64_t extent = 0;
    if (t.strides[i] < 0 || __builtin_mul_overflow(t.shape[i] - 1, t.strides[i], &extent) ||
        __builtin_add_overflow(last, extent, &last) || last > (std::int64_t{1} << 60)) {
      throw invalid_argument(what + "strides must be at least 0 and reach below 2^60, got " +
                             text_of(t.strides));
    }
  }
  return last + 1;
}

/// Requires that the axes of a result are nested: then no two elements share memory.
void check_nested(const tensor_view& t, const char* which) {
  std::vector<std::size_t> order(t.shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t x, std::size_t y) { return t.strides[x] < t.strides[y]; });
  std::int64_t inner = 0;  // the last element of the axes so far
  for (const std::size_t axis : order) {
    if (t.shape[axis] == 1) continue;
    if (t.strides[axis] <= inner) {
      throw invalid_argument(std::string(which) + ": elements may share memory: strides " +
                             text_of(t.strides));
    }
    inner += (t.shape[axis] - 1) * t.strides[axis];
  }
}

/// A checked tensor with its name and the elements that it spans.
struct named_tensor {
  const char* name;
  const_tensor_view view;
  std::int64_t span;
};

/// Checks the tensors of a call and turns them into those of backends.
class tensor_checks {
 public:
  explicit tensor_checks(format_id format) : format_(format) {}

  head_tensor read(const const_tensor_view& t, const char* which, const shape_of_four& shape) {
    read_.push_back({which, t, check_tensor(t, which, format_, shape)});
    return heads(t);
  }
  head_tensor read_lse(const const_tensor_view& t, const shape_of_four& shape) {
    read_.push_back({"lse", t, check_tensor(t, "lse", format_id::fp32, {shape.data(), 3})});
    return heads(t);
  }
  head_tensor write(const tensor_view& t, const char* which, const shape_of_four& shape) {
    return write(t, which, format_, shape);
  }
  head_tensor write_lse(const tensor_view& t, const shape_of_four& shape) {
    return write(t, "lse", format_id::fp32, {shape.data(), 3});
  }
  /// Requires that the results' memory is apart from that of all other tensors.
  void check_memory() const {
    for (std::size_t i = 0; i < written_.size(); ++i) {
      for (const named_tensor& other : read_) apart(written_[i], other);
      for (std::size_t j = 0; j < i; ++j) apart(written_[i], written_[j]);
    }
  }

 private:
  head_tensor write(const tensor_view& t, const char* which, format_id format,
                    std::span<const std::int64_t> shape) {
    if (t.data == nullptr) return {};
    written_.push_back({which, t, check_tensor(t, which, format, shape)});
    check_nested(t, which);
    return heads(t);
  }
  static head_tensor heads(const const_tensor_view& t) {
    // Backends write to results alone.
    head_tensor h{static_cast<std::byte*>(const_cast<void*>(t.data)), {}};
    const std::int64_t bytes = spec_of(t.format).storage_bits / 8;
    for (std::size_t i = 0; i < t.strides.size(); ++i) h.strides[i] = t.strides[i] * bytes;
    return h;
  }
  static void apart(const named_tensor& out, const named_tensor& in) {
    const auto row = [](const named_tensor& t) {
      return const_matrix_view{t.view.data, t.view.format, 1, t.span, t.span, 1, t.view.space};
    };
    check_apart(row(in), in.name, row(out), out.name);
  }

  format_id format_;
  std::vector<named_tensor> read_, written_;
};

/// The shape [batch, heads, queries, head dimension] of q, and that of k and v.
struct attention_shapes {
  shape_of_four q, k;
};

attention_shapes check_shapes(const const_tensor_view& q, const const_tensor_view& k,
                              const attention_options& o) {
  attention_shapes s{};
  const auto copy = [](const const_tensor_view& t, const char* which, shape_of_four& to) {
    if (t.shape.size() != to.size()) {
      throw invalid_argument(std::string(which) + ": 4 axes are expected, got " +
                             std::to_string(t.shape.size()));
    }
    std::copy(t.shape.begin(), t.shape.end(), to.begin());
    constexpr std::int64_t most = std::int64_t{1} << 31;
    for (const std::int64_t n : to) {
      if (n < 1 || n >= most) {
        throw invalid_argument(std::string(which) + ": sizes must be 1 to 2^31 - 1, got " +
                               text_of(to));
      }
    }
  };
  copy(q, "q", s.q);
  copy(k, "k", s.k);
  const std::string kernel = "attention of " + std::string(name(o.kernel));
  if (q.format != format_id::fp16 && q.format != format_id::bf16) {
    throw unsupported("q: " + kernel + " of " + std::string(name(q.format)) +
                      " numbers has no rule");
  }
  if (s.q[3] != 64 && s.q[3] != 128) {
    throw unsupported("q: " + kernel + " has rules for head dimensions 64 and 128, got " +
                      std::to_string(s.q[3]));
  }
  if (s.k[1] != s.q[1]) {
    throw unsupported(
        "k: " + kernel + " has no rule for groups of queries that share a head, got " +
        std::to_string(s.q[1]) + " heads of q and " + std::to_string(s.k[1]) + " of k");
  }
  if (s.k[0] != s.q[0] || s.k[3] != s.q[3]) {
    throw invalid_argument("k: shape must be that of q but for the third size, " + text_of(s.q) +
                           ", got " + text_of(s.k));
  }
  const bool is_single = s.q[2] == 1 || (s.k[2] == 1 && o.kernel == attention_kernel::math);
  if (is_single && o.kernel != attention_kernel::flash) {
    throw unsupported("q: " + kernel +
                      " has no rule for one query or key, of which the GPU has other "
                      "kernels");
  }
  if (o.causal && s.q[2] != s.k[2]) {
    throw invalid_argument("causal: as many keys as queries are expected, got " +
                           std::to_string(s.k[2]) + " keys and " + std::to_string(s.q[2]) +
                           " queries");
  }
  return s;
}

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// PyTorch's num_splits_heuristic(): the fewest parts of the keys with which `tiles` blocks of
/// threads keep the GPU at least 85 % as busy as with the best number. `places`: blocks that run at once.
int chosen_splits(std::int64_t tiles, std::int64_t places, std::int64_t blocks) {
  if (static_cast<float>(tiles) >= 0.8f * static_cast<float>(places)) return 1;
  const std::int64_t most =
      std::min({std::int64_t{numerics::torch_2_11::max_splits}, places, blocks});
  const auto busy = [&](std::int64_t splits) {
    // As many parts as with one split less: a part would be empty.
    if (splits > 1 && divided_up(blocks, splits) == divided_up(blocks, splits - 1)) return 0.0f;
    const float waves = static_cast<float>(tiles * splits) / static_cast<float>(places);
    return waves / std::ceil(waves);
  };
  float best = 0;
  for (std::int64_t i = 1; i <= most; ++i) best = std::max(best, busy(i));
  for (std::int64_t i = 1; i <= most; ++i) {
    const float share = busy(i);
    if (share > 0 && share >= 0.85 * best) return static_cast<int>(i);
  }
  return 1;
}

attention_plan plan_of(const attention_shapes& s, format_id format, const attention_options& o,
                       bool backward) {
  const auto [batch, heads, queries, wide] = s.q;
  const int dimension = static_cast<int>(wide);
  const double exact =
      o.scale > 0 ? double{o.scale} : 1 / std::sqrt(static_cast<double>(dimension));
  const bool is_math = o.kernel == attention_kernel::math;
  const auto scale = static_cast<float>(is_math ? std::sqrt(exact) : exact);
  const auto scale_log2 = static_cast<float>(double{scale} * std::numbers::log2e);
  attention_plan p{
      {o.kernel, std::bit_cast<std::uint32_t>(scale), std::bit_cast<std::uint32_t>(scale_log2)},
      format,
      o.causal,
      batch,
      heads,
      queries,
      s.k[2],
      dimension,
      128,
      128,
      1,
      1};
  if (o.kernel != attention_kernel::flash) return p;
  // The tiles stand in the names of FlashAttention's kernels.
  if (backward) {
    p.rows = dimension == 64 ? 128 : 64;
    p.dq_buffers = divided_up(o.multiprocessors, batch * heads);
    return p;
  }
  constexpr int split_rows = 64;
  const int split_block = dimension == 64 ? 256 : 128;
  // Two blocks of threads run on a multiprocessor.
  p.splits = o.splits > 0 ? o.splits
                          : chosen_splits(batch * heads * divided_up(queries, split_rows),
                                          std::int64_t{2} * o.multiprocessors,
                                          divided_up(p.keys, split_block));
  p.rows = p.splits > 1 ? split_rows : 128;
  p.block = p.splits > 1 ? split_block : dimension == 64 ? 128 : 64;
  return p;
}

void run(const attention_call& call, const executor& where) {
  check_threads(where);
  const backend& chosen = resolve(where, memory_space::host,
                                  [](const backend& b) { return b.attention.run != nullptr; });
  check_memory(chosen, memory_space::host);
  if (chosen.attention.run == nullptr) {
    throw unsupported("backend '" + std::string(chosen.name) + "' has no attention");
  }
  if (call.plan.rule.kernel == attention_kernel::math) return attention_math(call, where);
  chosen.attention.run(call, where);
}

}  // namespace
}  // namespace backends

void attention(const const_tensor_view& q, const const_tensor_view& k, const const_tensor_view& v,
               const tensor_view& out, const tensor_view& lse, const attention_options& options,
               const executor& where) {
  using namespace backends;
  check_attention_options(options);
  const attention_shapes s = check_shapes(q, k, options);
  tensor_checks tensors(q.format);
  attention_call call{plan_of(s, q.format, options, false)};
  call.q = tensors.read(q, "q", s.q);
  call.k = tensors.read(k, "k", s.k);
  call.v = tensors.read(v, "v", s.k);
  if (out.data == nullptr) throw invalid_argument("out: data is null");
  call.out = tensors.write(out, "out", s.q);
  call.lse = tensors.write_lse(lse, s.q);
  tensors.check_memory();
  if (lse.data != nullptr && options.kernel == attention_kernel::math) {
    throw unsupported("lse: attention of math returns no log-sum-exp");
  }
  run(call, where);
}

void attention_backward(const const_tensor_view& grad, const attention_results& of,
                        const tensor_view& dq, const tensor_view& dk, const tensor_view& dv,
                        const attention_options& options, const executor& where) {
  using namespace backends;
  check_attention_options(options);
  const attention_shapes s = check_shapes(of.q, of.k, options);
  tensor_checks tensors(of.q.format);
  attention_call call{plan_of(s, of.q.format, options, true)};
  call.q = tensors.read(of.q, "q", s.q);
  call.k = tensors.read(of.k, "k", s.k);
  call.v = tensors.read(of.v, "v", s.k);
  call.grad = tensors.read(grad, "grad", s.q);
  if (options.kernel != attention_kernel::math) {
    call.out = tensors.read(of.out, "out", s.q);
    call.lse = tensors.read_lse(of.lse, s.q);
  }
  call.dq = tensors.write(dq, "dq", s.q);
  call.dk = tensors.write(dk, "dk", s.k);
  call.dv = tensors.write(dv, "dv", s.k);
  tensors.check_memory();
  constexpr std::int64_t reproducible_keys = 256;
  if (options.kernel == attention_kernel::cudnn && dq.data != nullptr &&
      s.k[2] > reproducible_keys) {
    throw unsupported("dq: cuDNN's gradient of q differs from run to run above 256 keys, got " +
                      std::to_string(s.k[2]));
  }
  run(call, where);
}

}  // namespace samebits
