// Attention: what callers may rely on, and what is refused.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "samebits/attention.hpp"
#include "samebits/error.hpp"
#include "samebits/types.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

/// A tensor [1, heads, length, dimension] in bf16 with memory of its own.
struct tensor {
  tensor(std::int64_t heads, std::int64_t length, std::int64_t dimension, std::uint16_t code)
      : shape{1, heads, length, dimension},
        strides{heads * length * dimension, length * dimension, dimension, 1},
        codes(static_cast<std::size_t>(strides[0]), code) {}

  tensor_view view() { return {codes.data(), format, shape, strides}; }
  std::uint16_t& at(std::int64_t row, std::int64_t d) {
    return codes[static_cast<std::size_t>(row * shape[3] + d)];
  }

  format_id format = format_id::bf16;
  std::array<std::int64_t, 4> shape, strides;
  std::vector<std::uint16_t> codes;
};

constexpr std::uint16_t one = 0x3F80, nan = 0x7FFF, inf = 0x7F80;

struct problem {
  explicit problem(std::int64_t length, std::int64_t dimension = 64)
      : q(1, length, dimension, one),
        k(q),
        v(q),
        out(q),
        dq(q),
        dk(q),
        dv(q),
        lse(static_cast<std::size_t>(length)),
        lse_shape{1, 1, length},
        lse_strides{length, length, 1} {}

  tensor_view lse_view() { return {lse.data(), format_id::fp32, lse_shape, lse_strides}; }
  void forward(const attention_options& options, const executor& where = {}) {
    attention(q.view(), k.view(), v.view(), out.view(), lse_view(), options, where);
  }
  void backward(const attention_options& options, bool wants_dq = true) {
    attention_backward(q.view(), {q.view(), k.view(), v.view(), out.view(), lse_view()},
                       wants_dq ? dq.view() : tensor_view{}, dk.view(), dv.view(), options);
  }

  tensor q, k, v, out, dq, dk, dv;
  std::vector<float> lse;
  std::array<std::int64_t, 3> lse_shape, lse_strides;
};

const attention_options flash{}, cudnn{.kernel = attention_kernel::cudnn},
    math{.kernel = attention_kernel::math};
attention_options causal(attention_options o) {
  o.causal = true;
  return o;
}

TEST(Attention, OfEqualKeysIsTheMean) {
  for (const std::int64_t length : {1, 2, 63, 64, 65, 127, 128, 129}) {
    for (const attention_options& o : {flash, causal(flash), cudnn, causal(cudnn)}) {
      if (length == 1 && o.kernel == attention_kernel::cudnn) continue;
      problem p(length);
      p.forward(o);
      for (std::int64_t row = 0; row < length; ++row) {
        ASSERT_EQ(p.out.at(row, 5), one) << length;
        const auto seen = static_cast<float>(o.causal ? row + 1 : length);
        ASSERT_NEAR(p.lse[static_cast<std::size_t>(row)], 8 + std::log(seen), 1e-5);
      }
    }
  }
}

// Query i sees key i, and no later one: that key has a score far above the others.
TEST(Attention, MaskEndsBehindTheOwnKey) {
  for (const attention_options& o : {causal(flash), causal(cudnn), causal(math)}) {
    for (const std::int64_t length : {2, 64, 129, 300}) {
      for (const std::int64_t loud : {std::int64_t{1}, length / 2, length - 1}) {
        problem p(length);
        for (std::int64_t d = 0; d < 64; ++d) p.k.at(loud, d) = 0x4180;  // 16: score 128
        for (std::int64_t d = 0; d < 64; ++d) p.v.at(loud, d) = 0x4040;  // 3
        tensor_view lse = p.lse_view();
        if (o.kernel == attention_kernel::math) lse = {};
        attention(p.q.view(), p.k.view(), p.v.view(), p.out.view(), lse, o);
        for (std::int64_t row = 0; row < length; ++row) {
          ASSERT_EQ(p.out.at(row, 0), row < loud ? one : 0x4040) << row << ' ' << loud;
        }
      }
    }
  }
}

TEST(Attention, NaNAndInfStayInTheirRows) {
  for (const attention_options& o : {flash, cudnn}) {
    problem p(129);
    p.q.at(7, 3) = nan;
    p.q.at(9, 3) = inf;
    p.forward(o);
    for (std::int64_t row = 0; row < 129; ++row) {
      ASSERT_EQ(p.out.at(row, 0), row == 7 || row == 9 ? nan : one) << row;
    }
    const auto of_nan = p.lse[7];
    EXPECT_TRUE(o.kernel == attention_kernel::flash ? of_nan == INFINITY : std::isnan(of_nan));
    problem q(129);
    q.v.at(3, 2) = inf;  // column 2 alone
    q.forward(o);
    EXPECT_EQ(q.out.at(0, 2), inf);
    EXPECT_EQ(q.out.at(0, 1), one);
    q.backward(o);
    for (std::int64_t row = 0; row < 129;
         ++row) {  // the dot product of out and its gradient is Inf
      ASSERT_EQ(q.dk.at(row, 0), row == 3 ? nan : 0xFF80) << row;
    }
    EXPECT_EQ(q.dq.at(0, 0), nan);
    EXPECT_LT(q.dv.at(0, 0), inf);
  }
}

using support::expect_refusal;

TEST(Attention, RefusesByName) {
  const auto without_rule = [](const std::string& message, problem p, const attention_options& o) {
    expect_refusal<unsupported>(message, [&] { p.forward(o); });
  };
  without_rule("attention of efficient has no rule", problem(4),
               {.kernel = attention_kernel::efficient});
  without_rule("attention of flash_3 has no rule", problem(4),
               {.kernel = attention_kernel::flash_3});
  without_rule("dropout has no rule", problem(4), {.dropout = 0.1f});
  without_rule("head dimensions 64 and 128, got 96", problem(4, 96), flash);
  without_rule("attention of cudnn does not split", problem(4),
               {.kernel = attention_kernel::cudnn, .splits = 2});
  without_rule("no rule for one query", problem(1), cudnn);
  without_rule("returns no log-sum-exp", problem(4), math);
  problem groups(4);
  groups.q = tensor(2, 4, 64, one);
  without_rule("groups of queries that share a head, got 2 heads of q and 1", groups, flash);
  for (const format_id format : {format_id::fp32, format_id::e4m3}) {
    problem p(4);
    for (tensor* t : {&p.q, &p.k, &p.v, &p.out}) {
      t->format = format;
      t->codes.resize(t->codes.size() * 2);
    }
    without_rule("attention of flash of " + std::string(name(format)) + " numbers has no rule", p,
                 flash);
  }
  problem p(257);
  p.forward(cudnn);
  expect_refusal<unsupported>("above 256 keys, got 257", [&] { p.backward(cudnn); });
  p.backward(cudnn, false);  // dK and dV have a rule
  problem edge(256);
  edge.forward(cudnn);
  edge.backward(cudnn);
}

TEST(Attention, RefusesWrongArguments) {
  const auto wrong = [](const std::string& message, const attention_options& o,
                        const auto& change) {
    problem p(4);
    change(p);
    expect_refusal<invalid_argument>(message, [&] { p.forward(o); });
  };
  const auto as_is = [](problem&) {};
  const auto number = static_cast<attention_kernel>(9);
  wrong("kernel", {.kernel = number}, as_is);
  wrong("scale: must be finite and at least 0", {.scale = -1}, as_is);
  wrong("scale: must be finite", {.scale = INFINITY}, as_is);
  wrong("multiprocessors: must be at least 1, got 0", {.multiprocessors = 0}, as_is);
  wrong("splits: must be 0 to 128, got 129", {.splits = 129}, as_is);
  wrong("dropout: must be 0 to 1", {.dropout = 2}, as_is);
  wrong("k: shape must be that of q", {}, [](problem& p) { p.k = tensor(1, 4, 128, one); });
  wrong("v: shape must be [1, 1, 4, 64], got [1, 1, 5, 64]", {},
        [](problem& p) { p.v = tensor(1, 5, 64, one); });
  wrong("as many keys as queries", {.causal = true},
        [](problem& p) { p.k = p.v = tensor(1, 5, 64, one); });
  wrong("v: format must be bf16, got fp16", {}, [](problem& p) { p.v.format = format_id::fp16; });
  wrong("sizes must be 1 to 2^31 - 1", {}, [](problem& p) { p.q.shape[2] = 0; });
  wrong("q: sizes and strides must be at least 0", {}, [](problem& p) { p.q.strides[1] = -1; });
  wrong("out: elements may share memory", {}, [](problem& p) { p.out.strides[2] = 63; });
  problem p(4);
  const auto call = [&](const tensor_view& q, const tensor_view& out) {
    return [&p, q, out] { attention(q, p.k.view(), p.v.view(), out, {}, {}); };
  };
  tensor_view view = p.q.view();
  view.data = nullptr;
  expect_refusal<invalid_argument>("q: data is null", call(view, p.out.view()));
  expect_refusal<invalid_argument>("out: data is null", call(p.q.view(), {}));
  expect_refusal<invalid_argument>("out", call(p.q.view(), p.q.view()));
  view = p.q.view();
  view.shape = view.shape.first(3);
  expect_refusal<invalid_argument>("q: 4 axes are expected, got 3", call(view, p.out.view()));
  view = p.q.view();
  view.strides = view.strides.first(3);
  expect_refusal<invalid_argument>("one stride per axis", call(view, p.out.view()));
  view = p.q.view();
  view.space = memory_space::device;
  expect_refusal<unsupported>("host memory only", call(view, p.out.view()));
  expect_refusal<invalid_argument>("none", [&] { p.forward({}, {.backend = "none"}); });
}

}  // namespace
}  // namespace samebits
