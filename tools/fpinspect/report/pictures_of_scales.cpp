// Pictures of a report: loss scales.

#include "fpinspect/formats/describe.hpp"
#include "fpinspect/report/pictures.hpp"

namespace fpinspect {

// --- What fp16 loses of the gradient that loses most, at each loss scale -------------------------

namespace {

constexpr double curve_left = 52;
constexpr double curve_right = picture_width - 18;  // half of the last label hangs over
constexpr double curve_top = 26;
constexpr double curve_bottom = 176;
constexpr double least_percent = 0.001;

/// 100 % at the top, 0.001 % and less at the bottom, on a logarithmic axis.
double height_of(double percent_lost) {
  constexpr picture_axis decades = {0, 5, curve_top, curve_bottom};
  return decades(std::log10(100.0 / std::max(percent_lost, least_percent)));
}

}  // namespace

svg_picture loss_scale_picture(std::span<const tensor_evidence> tensors, int best,
                               double need_percent) {
  using counter = std::uint64_t scale_loss::*;
  const auto largest = [&](int log2, counter lost) -> std::pair<std::uint64_t, std::uint64_t> {
    const auto worst = worst_gradient(tensors, log2, lost);
    if (!worst) return {0, 1};
    const cast_statistics& stats = tensors[*worst].stats;
    return {loss_at(stats.binades, log2).*lost, stats.nonzero()};
  };
  const auto text = [&](int log2, counter lost) {
    const auto [part, whole] = largest(log2, lost);
    return percent(part, whole);
  };
  const auto share = [&](int log2, counter lost) {
    const auto [part, whole] = largest(log2, lost);
    return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  const int first = std::max(std::min(0, best - 24), best - 60);
  const int last = std::min(std::max(0, best) + 6, largest_scale_log2);
  const picture_axis x = {static_cast<double>(first), static_cast<double>(last), curve_left,
                          curve_right};
  const auto curve = [&](counter lost) {
    std::string data;
    for (int k = first; k <= last; ++k) {
      data +=
          cat(k == first ? "M" : "L", coordinate(x(k)), " ", coordinate(height_of(share(k, lost))));
    }
    return data;
  };
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
    picture.tick_on_left("grid", curve_left, curve_right, height_of(decade),
                         cat(general(decade, 3), " %"));
  }
  picture.text("end", curve_left - 6, curve_bottom + 4, "0");
  picture.line("axis", curve_left, curve_bottom, curve_right, curve_bottom);
  for (int k = first; k <= last; ++k) {
    if (k % 8 == 0) picture.tick_below(x(k), curve_bottom, power_text(k));
  }
  if (need_percent > least_percent) {
    picture.line("mark", curve_left, height_of(need_percent), curve_right, height_of(need_percent));
  }
  picture.line("mark", x(best), curve_top, x(best), curve_bottom);
  picture.path("c1", curve(&scale_loss::underflow));
  picture.path("bad", curve(&scale_loss::overflow));
  picture.text("strong end", x(best) - 5, curve_top + 12, power_text(best));
  picture.text("strong", curve_left + 4, 14, "become 0");
  picture.text("strong end", curve_right, 14, "overflow");
  return picture;
}

// --- The loss scale over the steps of a training run, and the steps that were skipped ------------

namespace {

constexpr double trace_left = 52;
constexpr double trace_right = picture_width - 12;
constexpr double trace_top = 14;
constexpr double trace_bottom = 150;
constexpr double skips_top = 160;
constexpr double skips_bottom = 186;
constexpr std::size_t most_trace_columns = 336;  // a unit of the picture each

/// The vertical axis of the scales above 0; of 1 if there are none: whole powers of two, at least four
/// apart.
picture_axis axis_of(std::span<const scaler_row> rows) {
  constexpr double none = std::numeric_limits<double>::infinity();
  double lowest = none;
  double highest = -none;
  for (const scaler_row& row : rows) {
    if (row.scale == 0) continue;
    lowest = std::min(lowest, std::log2(row.scale));
    highest = std::max(highest, std::log2(row.scale));
  }
  if (lowest == none) lowest = highest = 0;
  const double bottom = std::floor(lowest) - 1;
  return {bottom, std::max(std::ceil(highest) + 1, bottom + 4), trace_bottom, trace_top};
}

/// The end of the picture's text: from which step to the last one the scale is 0.
std::string zeros_text(std::span<const scaler_row> rows) {
  const auto above = std::find_if(rows.rbegin(), rows.rend(),
                                  [](const scaler_row& row) { return row.scale != 0; });
  if (above == rows.rbegin()) return ".";
  return cat("; the scale is 0 from step ", above.base()->step, " on.");
}

}  // namespace

svg_picture scale_trace_picture(std::span<const scaler_row> rows) {
  const std::vector<trace_column> columns =
      trace_columns(rows, most_trace_columns, [](double scale) { return std::log2(scale); });
  const picture_axis axis = axis_of(rows);
  // Scales of 0 lie at the bottom.
  const auto y = [&](double log2) { return coordinate(axis(std::max(log2, axis.first))); };
  const std::size_t skipped = skipped_steps(rows);
  svg_picture picture(picture_width, 222, "Loss scale of the training run",
                      cat(number_of(rows.size(), "step"), ", ", skipped, " skipped; the scale is ",
                          general(rows.front().scale, 6), " in the first step and ",
                          general(rows.back().scale, 6), " in the last", zeros_text(rows)));
  const int lowest = static_cast<int>(axis.first);
  const int highest = static_cast<int>(axis.last);
  for (int k = lowest; k <= highest; k += (highest - lowest + 4) / 5) {
    picture.tick_on_left("grid", trace_left, trace_right, axis(k), power_text(k));
  }
  const double width = (trace_right - trace_left) / static_cast<double>(columns.size());
  std::string scales;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const trace_column& c = columns[i];
    const double x = trace_left + width * static_cast<double>(i);
    const std::string top = y(c.highest);
    scales += cat(i == 0 ? "M" : "L", coordinate(x), " ", top);
    if (c.lowest < c.highest) scales += cat("V", y(c.lowest), "V", top);
    scales += cat("H", coordinate(x + width));
    if (c.skipped == 0) continue;
    const double share = static_cast<double>(c.skipped) / static_cast<double>(c.steps);
    const double height = std::max(6.0, share * (skips_bottom - skips_top));
    picture.rect("skipped", x, skips_bottom - height, std::max(width, 2.0), height);
  }
  picture.path("c1", scales);
  picture.line("axis", trace_left, skips_bottom, trace_right, skips_bottom);
  picture.text("end", trace_left - 6, skips_bottom, "skipped");
  picture.text("start", trace_left, 202, "step ", rows.front().step);
  picture.text("end", trace_right, 202, rows.back().step);
  return picture;
}

}  // namespace fpinspect
