// attention() and attention_backward(): check arguments and choose a backend.
#include "backends/dispatch/calls/attention.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
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

void check_attention_options(const attention_options& o) {
  check_value("kernel", o.kernel, "attention_kernel");
  if (!(o.scale >= 0) || !std::isfinite(o.scale)) {
    throw invalid_argument("scale: must be finite and at least 0, got " + std::to_string(o.scale));
  }
  check_at_least("multiprocessors", o.multiprocessors, 1);
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

/// A checked tensor's name and memory.
struct named_memory {
  const char* name;
  const_matrix_view span;
};

named_memory checked(const const_tensor_view& t, const char* which, format_id format,
                     std::span<const std::int64_t> shape) {
  const std::string what = std::string(which) + ": ";
  const const_matrix_view memory = memory_of(t, which);
  check_format(memory, which, std::array{format});
  if (!std::equal(shape.begin(), shape.end(), t.shape.begin(), t.shape.end())) {
    throw invalid_argument(what + "shape must be " + shape_text(shape) + ", got " +
                           shape_text(t.shape));
  }
  if (t.space != memory_space::host) {
    throw unsupported(what + "attention is computed in host memory only");
  }
  if (t.data == nullptr) throw invalid_argument(what + "data is null");
  if (memory.cols == std::int64_t{1} << 60) {
    throw invalid_argument(what + "spans 2^60 elements or more: strides " + shape_text(t.strides));
  }
  return {which, memory};
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
                             shape_text(t.strides));
    }
    inner += (t.shape[axis] - 1) * t.strides[axis];
  }
}

/// Checks the tensors of a call. The results' memory must be apart from that of all others.
class tensor_checks {
 public:
  void read(const const_tensor_view& t, const char* which, format_id format,
            std::span<const std::int64_t> shape) {
    read_.push_back(checked(t, which, format, shape));
  }
  void write(const tensor_view& t, const char* which, format_id format,
             std::span<const std::int64_t> shape) {
    if (t.data == nullptr) return;
    const named_memory out = checked(t, which, format, shape);
    check_nested(t, which);
    for (const named_memory& other : written_) apart(out, other);
    written_.push_back(out);
  }
  void check_memory() const {
    for (const named_memory& out : written_) {
      for (const named_memory& in : read_) apart(out, in);
    }
  }

 private:
  static void apart(const named_memory& out, const named_memory& other) {
    check_apart(other.span, other.name, out.span, out.name);
  }

  std::vector<named_memory> read_, written_;
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
                               shape_text(to));
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
    throw invalid_argument("k: shape must be that of q but for the third size, " + shape_text(s.q) +
                           ", got " + shape_text(s.k));
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

numerics::torch_2_11::attention_plan plan_of(const attention_shapes& s, format_id format,
                                             const attention_options& o, bool backward) {
  return numerics::torch_2_11::plan_of(
      {o.kernel, format, o.causal, s.q[0], s.q[1], s.q[2], s.k[2], static_cast<int>(s.q[3]),
       std::bit_cast<std::uint32_t>(o.scale), o.multiprocessors, o.splits},
      backward);
}

void run(const attention_call& call, const executor& where) {
  const backend& chosen = backend_for(
      where, memory_space::host, [](const backend& b) { return b.attention.run != nullptr; },
      "has no attention");
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
  tensor_checks tensors;
  tensors.read(q, "q", q.format, s.q);
  tensors.read(k, "k", q.format, s.k);
  tensors.read(v, "v", q.format, s.k);
  if (out.data == nullptr) throw invalid_argument("out: data is null");
  tensors.write(out, "out", q.format, s.q);
  tensors.write(lse, "lse", format_id::fp32, std::span(s.q).first(3));
  tensors.check_memory();
  if (lse.data != nullptr && options.kernel == attention_kernel::math) {
    throw unsupported("lse: attention of math returns no log-sum-exp");
  }
  run({plan_of(s, q.format, options, false), q, k, v, out, lse}, where);
}

void attention_backward(const const_tensor_view& grad, const attention_results& of,
                        const tensor_view& dq, const tensor_view& dk, const tensor_view& dv,
                        const attention_options& options, const executor& where) {
  using namespace backends;
  check_attention_options(options);
  const attention_shapes s = check_shapes(of.q, of.k, options);
  const format_id format = of.q.format;
  tensor_checks tensors;
  tensors.read(of.q, "q", format, s.q);
  tensors.read(of.k, "k", format, s.k);
  tensors.read(of.v, "v", format, s.k);
  tensors.read(grad, "grad", format, s.q);
  if (options.kernel != attention_kernel::math) {
    tensors.read(of.out, "out", format, s.q);
    tensors.read(of.lse, "lse", format_id::fp32, std::span(s.q).first(3));
  }
  tensors.write(dq, "dq", format, s.q);
  tensors.write(dk, "dk", format, s.k);
  tensors.write(dv, "dv", format, s.k);
  tensors.check_memory();
  constexpr std::int64_t reproducible_keys = 256;
  if (options.kernel == attention_kernel::cudnn && dq.data != nullptr &&
      s.k[2] > reproducible_keys) {
    throw unsupported("dq: cuDNN's gradient of q differs from run to run above 256 keys, got " +
                      std::to_string(s.k[2]));
  }
  run({plan_of(s, format, options, true), of.q, of.k, of.v, of.out, of.lse, grad, dq, dk, dv},
      where);
}

}  // namespace samebits
