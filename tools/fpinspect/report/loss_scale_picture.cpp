// What fp16 loses of the gradients at each loss scale: the share of the tensor that loses the most.
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/report/pictures.hpp"
#include "fpinspect/verdict/verdict.hpp"

namespace fpinspect {
namespace {

constexpr double curve_left = 52;
constexpr double curve_right = picture_width - 18;  // half of the last label hangs over
constexpr double curve_top = 26;
constexpr double curve_bottom = 176;
constexpr double least_percent = 0.001;

/// 100 % at the top, 0.001 % and less at the bottom, on a logarithmic axis.
double height_of(double percent_lost) {
  const double decades = std::log10(100.0 / std::max(percent_lost, least_percent));
  return curve_top + decades / 5.0 * (curve_bottom - curve_top);
}

struct scale_axis {
  int first;
  int last;

  [[nodiscard]] double x(int log2) const {
    const double share = static_cast<double>(log2 - first) / static_cast<double>(last - first);
    return curve_left + share * (curve_right - curve_left);
  }
};

std::string curve(const scale_axis& axis, const std::function<double(int)>& percent_at) {
  std::string data;
  for (int k = axis.first; k <= axis.last; ++k) {
    data += cat(k == axis.first ? "M" : "L", coordinate(axis.x(k)), " ",
                coordinate(height_of(percent_at(k))));
  }
  return data;
}

}  // namespace

svg_picture loss_scale_picture(std::span<const tensor_evidence> tensors, int best,
                               double need_percent) {
  using counter = std::uint64_t scale_loss::*;
  const auto largest = [&](int log2, counter lost) -> std::pair<std::uint64_t, std::uint64_t> {
    const auto worst = worst_gradient(tensors, log2, lost);
    if (!worst) return {0, 1};
    return {loss_at(tensors[*worst].magnitudes, log2).*lost, tensors[*worst].nonzero};
  };
  const auto text = [&](int log2, counter lost) {
    const auto [part, whole] = largest(log2, lost);
    return percent(part, whole);
  };
  const auto share = [&](int log2, counter lost) {
    const auto [part, whole] = largest(log2, lost);
    return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  const scale_axis axis = {std::max(std::min(0, best - 24), best - 60),
                           std::min(std::max(0, best) + 6, largest_scale_log2)};
  const int beyond = std::min(best + 2, largest_scale_log2);
  const char* what = ", the largest scale without overflow, ";
  if (best == largest_scale_log2) what = ", the largest scale that loss scalers hold, ";
  if (best == smallest_scale_log2) what = ", the smallest scale that loss scalers hold, ";
  svg_picture picture(picture_width, 206, "Loss scale for fp16 gradients",
                      cat("Of the tensor that loses the largest share: without a scale ",
                          text(0, &scale_loss::underflow), " become 0; at ", power_text(best), what,
                          text(best, &scale_loss::underflow), "; at ", power_text(beyond), ", ",
                          text(beyond, &scale_loss::overflow), " overflow."));
  for (const double decade : {100.0, 1.0, 0.01}) {
    const double y = height_of(decade);
    picture.line("grid", curve_left, y, curve_right, y);
    picture.text("end", curve_left - 6, y + 4, cat(general(decade, 3), " %"));
  }
  picture.text("end", curve_left - 6, curve_bottom + 4, "0");
  picture.line("axis", curve_left, curve_bottom, curve_right, curve_bottom);
  for (int k = axis.first; k <= axis.last; ++k) {
    if (k % 8 != 0) continue;
    picture.line("axis", axis.x(k), curve_bottom, axis.x(k), curve_bottom + 4);
    picture.text("middle", axis.x(k), curve_bottom + 16, power_text(k));
  }
  if (need_percent > least_percent) {
    picture.line("mark", curve_left, height_of(need_percent), curve_right, height_of(need_percent));
  }
  picture.line("mark", axis.x(best), curve_top, axis.x(best), curve_bottom);
  picture.path("c1", curve(axis, [&](int k) { return share(k, &scale_loss::underflow); }));
  picture.path("bad", curve(axis, [&](int k) { return share(k, &scale_loss::overflow); }));
  picture.text("strong end", axis.x(best) - 5, curve_top + 12, power_text(best));
  picture.text("strong", curve_left + 4, 14, "become 0");
  picture.text("strong end", curve_right, 14, "overflow");
  return picture;
}

}  // namespace fpinspect
