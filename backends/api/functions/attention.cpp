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
#include "backends/api/run_call.hpp"
#include "backends/dispatch/refuse.hpp"

namespace samebits {
namespace backends {
namespace {

using shape_of_four = std::array<std::int64_t, 4>;

void check_attention_options(const attention_options& o) {
  check_value("kernel", o.kernel, "attention_kernel");
  refuse_if(!(o.scale >= 0) || !std::isfinite(o.scale),
            "scale: must be finite and at least 0, got ", o.scale);
  check_at_least("multiprocessors", o.multiprocessors, 1);
  constexpr int most = numerics::torch_2_11::max_splits;
  refuse_if(o.splits < 0 || o.splits > most, "splits: must be 0 to ", most, ", got ", o.splits);
  refuse_if(!(o.dropout >= 0 && o.dropout <= 1), "dropout: must be 0 to 1, got ", o.dropout);
  const std::string kernel(name(o.kernel));
  refuse_if<unsupported>(
      o.kernel == attention_kernel::efficient || o.kernel == attention_kernel::flash_3,
      "kernel: attention of ", kernel, " has no rule");
  refuse_if<unsupported>(o.dropout != 0, "dropout: attention with dropout has no rule");
  refuse_if<unsupported>(o.splits != 0 && o.kernel != attention_kernel::flash,
                         "splits: attention of ", kernel, " does not split the keys");
}

/// A checked tensor's name and memory.
struct named_memory {
  const char* name;
  const_matrix_view span;
};

named_memory checked(const const_tensor_view& t, const char* which, format_id format,
                     std::span<const std::int64_t> shape) {
  const const_matrix_view memory = memory_of(t, which);
  check_format(memory, which, std::array{format});
  refuse_if(!std::equal(shape.begin(), shape.end(), t.shape.begin(), t.shape.end()), which,
            ": shape must be ", shape, ", got ", t.shape);
  refuse_if<unsupported>(t.space != memory_space::host, which,
                         ": attention is computed in host memory only");
  refuse_if(t.data == nullptr, which, ": data is null");
  refuse_if(memory.cols == std::int64_t{1} << 60, which, ": spans 2^60 elements or more: strides ",
            t.strides);
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
    refuse_if(t.strides[axis] <= inner, which, ": elements may share memory: strides ", t.strides);
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
    refuse_if(t.shape.size() != to.size(), which, ": 4 axes are expected, got ", t.shape.size());
    std::copy(t.shape.begin(), t.shape.end(), to.begin());
    constexpr std::int64_t most = std::int64_t{1} << 31;
    for (const std::int64_t n : to) {
      refuse_if(n < 1 || n >= most, which, ": sizes must be 1 to 2^31 - 1, got ", to);
    }
  };
  copy(q, "q", s.q);
  copy(k, "k", s.k);
  const std::string kernel = "attention of " + std::string(name(o.kernel));
  refuse_if<unsupported>(q.format != format_id::fp16 && q.format != format_id::bf16, "q: ", kernel,
                         " of ", q.format, " numbers has no rule");
  refuse_if<unsupported>(s.q[3] != 64 && s.q[3] != 128, "q: ", kernel,
                         " has rules for head dimensions 64 and 128, got ", s.q[3]);
  refuse_if<unsupported>(s.k[1] != s.q[1], "k: ", kernel,
                         " has no rule for groups of queries that share a head, got ", s.q[1],
                         " heads of q and ", s.k[1], " of k");
  refuse_if(s.k[0] != s.q[0] || s.k[3] != s.q[3],
            "k: shape must be that of q but for the third size, ", s.q, ", got ", s.k);
  const bool is_single = s.q[2] == 1 || (s.k[2] == 1 && o.kernel == attention_kernel::math);
  refuse_if<unsupported>(is_single && o.kernel != attention_kernel::flash, "q: ", kernel,
                         " has no rule for one query or key, of which the GPU has other "
                         "kernels");
  refuse_if(o.causal && s.q[2] != s.k[2], "causal: as many keys as queries are expected, got ",
            s.k[2], " keys and ", s.q[2], " queries");
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
  const backend& chosen = backend_for([](const backend& b) { return b.attention.run != nullptr; },
                                      memory_space::host, where, "has no attention");
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
  refuse_if(out.data == nullptr, "out: data is null");
  tensors.write(out, "out", q.format, s.q);
  tensors.write(lse, "lse", format_id::fp32, std::span(s.q).first(3));
  tensors.check_memory();
  refuse_if<unsupported>(lse.data != nullptr && options.kernel == attention_kernel::math,
                         "lse: attention of math returns no log-sum-exp");
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
  refuse_if<unsupported>(
      options.kernel == attention_kernel::cudnn && dq.data != nullptr && s.k[2] > reproducible_keys,
      "dq: cuDNN's gradient of q differs from run to run above 256 keys, got ", s.k[2]);
  run({plan_of(s, format, options, true), of.q, of.k, of.v, of.out, of.lse, grad, dq, dk, dv},
      where);
}

}  // namespace samebits
