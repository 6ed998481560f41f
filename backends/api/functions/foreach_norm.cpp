// foreach_norm() and clip_grad_norm(): check arguments and choose a backend.
#include <array>
#include <bit>
#include <limits>
#include <vector>

#include "backends/api/functions/sum_checks.hpp"
#include "backends/api/lists/list_checks.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/reference/functions/function_range.hpp"
#include "numerics/hardware/torch_operators/foreach_norm.hpp"
#include "numerics/hardware/torch_operators/power.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits {
void foreach_norm(const tensor_list& tensors, const matrix_view& norms, function_rule rule,
                  const executor& where) {
  using namespace backends;
  check_view(norms, "norms");
  check_distinct(norms, "norms");
  check_torch_rule(rule, "norms of a list", norms.format);
  check_list(tensors, "tensors", std::array{norms.format});
  const auto count = static_cast<std::int64_t>(tensors.size());
  check_shape(norms, "norms", 1, count);
  refuse_if(norms.space != tensors.space(),
            "norms: must lie in the same memory as the tensors, host or device");
  std::vector<const_matrix_view> views;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    views.push_back(tensors[i].view);
    check_apart(views.back(), tensors.name(i), norms, "norms");
  }
  const sum_kernels& sums = sums_of(where, tensors.space(), "norms of lists");
  values words(views.size());
  foreach_norm_on_threads(views, words.data(), where, sums);
  store_numbers(norms, 0, 0, count, words.data());
}

float clip_grad_norm(const tensor_list& gradients, double max_norm, function_rule rule,
                     const executor& where) {
  using namespace backends;
  refuse_if(!(max_norm >= 0), "max_norm: must be a number >= 0");
  if (gradients.size() == 0) return 0;
  const format_id format = gradients[0].view.format;
  values codes(gradients.size());
  const auto count = static_cast<std::int64_t>(gradients.size());
  const matrix_view norms{codes.data(), format, 1, count, count, 1, gradients.space()};
  foreach_norm(gradients, norms, rule, where);
  std::uint32_t total = 0;
  const std::int64_t shape[] = {count}, strides[] = {1};
  reduce_axes({norms.data, format, shape, strides}, {}, matrix_view{&total, format, 1, 1, 1},
              {.of = axis_reduction::norm, .rule = rule}, where);
  const std::uint32_t norm = torch::value_of(format, total);
  const std::uint32_t most = torch::narrow(std::bit_cast<std::uint64_t>(max_norm));
  const auto factor = std::bit_cast<float>(torch::clip_factor(format, norm, most));
  if (factor == factor) {
    scale(gradients, factor, where);
  } else {  // scale() takes no NaN: 0 times infinity is one
    scale(gradients, 0, where);
    scale(gradients, std::numeric_limits<float>::infinity(), where);
  }
  return std::bit_cast<float>(norm);
}

}  // namespace samebits
