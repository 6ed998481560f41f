// Attention as cases.
#include "engine/cases/attention.hpp"

#include <array>
#include <vector>

#include "engine/cases/operations.hpp"
#include "engine/cases/torch_numbers.hpp"

namespace samebits::support {
namespace {

attention_case draw_attention(const word_source& next) {
  attention_case c;
  c.options.kernel = below(2, next) == 0 ? attention_kernel::flash : attention_kernel::cudnn;
  c.options.causal = below(2, next) == 0;
  const bool flash = c.options.kernel == attention_kernel::flash;
  c.backward = below(2, next) == 0;
  c.format = below(2, next) == 0 ? format_id::bf16 : format_id::fp16;
  c.batch = 1 + below(2, next);
  c.heads = 1 + below(2, next);
  c.dimension = below(2, next) == 0 ? 64 : 128;
  const auto length = [&] {
    constexpr int edges[] = {16, 17, 63, 64, 65, 127, 128, 129, 160, 257};
    return below(4, next) == 0 ? one_of(edges, next) : 2 + static_cast<int>(below(30, next));
  };
  c.queries = length();
  c.keys = c.options.causal ? c.queries : length();
  constexpr float scales[] = {0, 0.125f, 0.3f, 1.0f};
  c.options.scale = one_of(scales, next);
  constexpr int multiprocessors[] = {132, 1, 3};
  c.options.multiprocessors = one_of(multiprocessors, next);
  constexpr int splits[] = {0, 1, 2, 3, 5, 40};
  if (flash) c.options.splits = one_of(splits, next);
  c.gaps = below(3, next) == 0;
  c.heads_inner = below(3, next) == 0;
  constexpr int specials[] = {0, 0, 0, 5000, 64};
  c.special = one_of(specials, next);
  return c;
}

/// The layouts of a tensor's rows, [batch * length * heads, columns] in memory order.
array_layout layout_of(const attention_case& c, std::int64_t length, bool gaps) {
  array_layout l = dense_layout(c.batch * c.heads * length, c.dimension);
  if (gaps) l.row_stride += 8;
  return l;
}
array_layout lse_layout(const attention_case& c) {
  return dense_layout(c.batch * c.heads * c.queries, 1);
}

/// q, k, v, out, lse; backward also grad, dq, dk, dv.
buffers memory_of_attention(const attention_case& c) {
  const word_source next = words_from(c.content);
  const number_kind kind{.rarity = static_cast<std::uint64_t>(c.special), .low = -5, .high = 1};
  const auto given = [&](const char* name, std::int64_t length, bool gaps) {
    return case_buffer{name, buffer_use::fixed,
                       numbers(c.format, layout_of(c, length, gaps), next, kind)};
  };
  const auto result = [&](const char* name, std::int64_t length) {
    return result_buffer(name, c.format, layout_of(c, length, c.gaps));
  };
  buffers all = {given("q", c.queries, c.gaps), given("k", c.keys, c.gaps),
                 given("v", c.keys, false)};
  if (!c.backward) {
    all.push_back(result("out", c.queries));
    all.push_back(result_buffer("lse", format_id::fp32, lse_layout(c)));
    return all;
  }
  all.push_back(given("out", c.queries, false));
  strided_buffer lse(format_id::fp32, lse_layout(c));
  for (std::int64_t i = 0; i < lse.layout().rows; ++i) {  // 2 to 4
    lse.store(i, 0x40000000u + static_cast<std::uint32_t>(next() >> 41));
  }
  all.push_back({"lse", buffer_use::fixed, std::move(lse)});
  all.push_back(given("grad", c.queries, false));
  all.push_back(result("dq", c.queries));
  all.push_back(result("dk", c.keys));
  all.push_back(result("dv", c.keys));
  return all;
}

returned_values attention_on(const attention_case& c, const call_site& site) {
  std::vector<std::array<std::int64_t, 4>> shapes(site.views.size()), strides(site.views.size());
  const auto tensor = [&](std::size_t i) {
    const matrix_view& v = site.views[i];
    const std::int64_t length = v.rows / (c.batch * c.heads), r = v.row_stride;
    shapes[i] = {c.batch, c.heads, length, c.dimension};
    strides[i] = {c.heads * length * r, length * r, r, v.col_stride};
    if (c.heads_inner) strides[i] = {c.heads * length * r, r, c.heads * r, v.col_stride};
    const std::size_t axes = i == 4 ? 3 : 4;
    return tensor_view{v.data, v.format, {shapes[i].data(), axes}, {strides[i].data(), axes}};
  };
  const auto where = site.target.where(c.threads);
  if (!c.backward) {
    attention(tensor(0), tensor(1), tensor(2), tensor(3), tensor(4), c.options, where);
    return {};
  }
  attention_backward(tensor(5), {tensor(0), tensor(1), tensor(2), tensor(3), tensor(4)},
                     wants_dq(c) ? tensor(6) : tensor_view{}, tensor(7), tensor(8), c.options,
                     where);
  return {};
}

}  // namespace

bool wants_dq(const attention_case& c) {
  return c.options.kernel == attention_kernel::flash || c.keys <= 256;
}

void describe(attention_case& c, case_fields& fields) {
  const bool causal = c.options.causal;
  fields.show("kernel", c.options.kernel, "backward", c.backward, "format", c.format, "causal",
              causal, "dimension", c.dimension, "scale", c.options.scale, "splits",
              c.options.splits, "multiprocessors", c.options.multiprocessors, "heads inner",
              c.heads_inner);
  fields.reset("batch", c.batch, 1, "heads", c.heads, 1, "special", c.special, 0, "gaps", c.gaps,
               false);
  fields.show("queries", c.queries, "keys", c.keys);
  for (const std::int64_t n : {c.queries / 2, c.queries - 1}) {
    if (!fields.change(n >= 2)) continue;
    c.queries = n;
    if (causal) c.keys = n;
  }
  if (fields.change(c.keys > 2 && !causal)) c.keys /= 2;
}

array_operation attention_operation() {
  return judged("the rule", attention_by_rule,
                make_operation<attention_case>(
                    "attention", {draw_attention, memory_of_attention, attention_on}, 16));
}

}  // namespace samebits::support
