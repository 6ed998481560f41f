// check_tensor_cores(): checks every instruction of the current device, family by family.
#include <algorithm>

#include "backends/dispatch/refuse.hpp"
#include "tensor_core_probe/check.hpp"
#include "tensor_core_probe/device.hpp"
#include "tensor_core_probe/finding.hpp"
#include "tensor_core_probe/instructions.hpp"
#include "tensor_core_probe/tiles.hpp"

// Defined in the CMake target samebits_tensor_core_gpu, whose link options pull the symbol in; null
// in a program without that library.
extern "C" [[gnu::weak]] const samebits::backends::tensor_cores::device*
samebits_tensor_core_device();

namespace samebits {
namespace {

using namespace backends::tensor_cores;

const device& usable_device() {
  if (samebits_tensor_core_device == nullptr) {
    refuse<unsupported>(
        "tensor cores cannot be asked: this program is linked without "
        "samebits_tensor_core_gpu, which needs a build with CUDA");
  }
  const device& d = *samebits_tensor_core_device();
  const std::string reason = d.why_unsupported();
  require<unsupported>(reason.empty(), "tensor cores cannot be asked: ", reason);
  return d;
}

void check_options(const tensor_core_check_options& options) {
  constexpr std::uint64_t max_cases = std::uint64_t{1} << 30;
  require(options.cases >= 1 && options.cases <= max_cases, "options.cases must be 1 to 2^30, got ",
          options.cases);
  require(options.keep >= 0 && options.keep <= tile_columns, "options.keep must be 0 to 8, got ",
          options.keep);
  if (options.instruction.empty() || find_instruction(options.instruction)) return;
  std::string names;
  for (const std::string_view n : tensor_core_instruction_names()) {
    names += detail::cat(names.empty() ? "" : ", ", n);
  }
  refuse("options.instruction must be one of ", names, ", got ", options.instruction);
}

/// The check of one instruction.
class inspection {
 public:
  inspection(const device& on, const tensor_core_check_options& options, instruction what,
             const tensor_arithmetic& row, bool listed)
      : device_(on),
        options_(options),
        what_(what),
        shape_(shape_of(what)),
        row_(row),
        rule_(
            numerics::accumulate_rule_of(row, shape_.a, shape_.b, shape_.result, shape_.products)),
        finding_(new_finding(name(what), row, shape_.result, listed)) {}

  tensor_core_finding run() {
    for (int f = 0; f < family_count; ++f) run_family(static_cast<family>(f));
    if (finding_.differed != 0 && options_.fit) add_fit(finding_, shape_, rule_, seen_);
    return std::move(finding_);
  }

 private:
  /// Runs one family of operands and records the differences.
  void run_family(family how) {
    const auto rows = static_cast<std::uint64_t>(rows_of(what_));
    const auto tiles = static_cast<std::uint32_t>((options_.cases + rows - 1) / rows);
    const random_tiles operands = draw_tiles(what_, how, options_.seed, tiles);
    const job j = {what_, rule_, tiles, operands.a.data(), operands.b.data(), operands.c.data()};
    const outcome got = device_.run(j);
    finding_.compared += compared(j);
    finding_.differed += got.differing;
    for (const difference& d : got.first) {
      const int row = static_cast<int>(d.row);
      const case_codes x =
          case_at(operands, what_, d.tile, d.partner, row, static_cast<int>(d.column));
      seen_.push_back({x, d.got});
      if (!finding_.first_difference.empty()) continue;
      finding_.first_difference =
          difference_text(name(how), d.expected, result_of_case(row_.unit, shape_, x, d.got));
    }
    keep_cases(operands, got, tiles);
  }

  /// Records the results on the diagonals of tiles, which are the cases themselves: for the search,
  /// and for the caller.
  void keep_cases(const random_tiles& operands, const outcome& got, std::uint32_t tiles) {
    constexpr std::uint32_t max_seen = 64;
    for (std::uint32_t t = 0; t < std::min(tiles, max_seen); ++t) {
      for (int r = 0; r < tile_columns; ++r) {
        const case_codes x = case_at(operands, what_, t, t, r, r);
        const std::uint32_t d = got.own[result_index(what_, t, r, r)];
        if (t == 0 && r < options_.keep) {
          finding_.kept.push_back(result_of_case(row_.unit, shape_, x, d));
        }
        if (options_.fit) seen_.push_back({x, d});
      }
    }
  }

  const device& device_;
  const tensor_core_check_options& options_;
  instruction what_;
  shape shape_;
  tensor_arithmetic row_;
  numerics::accumulate_rule rule_;
  tensor_core_finding finding_;
  std::vector<observation> seen_;
};

}  // namespace

tensor_core_gpu current_tensor_core_gpu() {
  const device& d = usable_device();
  const int capability = d.capability();
  return {d.name(), capability / 10, capability % 10};
}

std::vector<std::string_view> tensor_core_instruction_names() {
  std::vector<std::string_view> names;
  for (int i = 0; i < instruction_count; ++i) {
    names.push_back(name(static_cast<instruction>(i)));
  }
  return names;
}

std::vector<tensor_core_finding> check_tensor_cores(const tensor_core_check_options& options) {
  check_options(options);
  const device& on = usable_device();
  const int capability = on.capability();
  std::vector<tensor_core_finding> findings;
  for (int i = 0; i < instruction_count; ++i) {
    const auto what = static_cast<instruction>(i);
    if (!options.instruction.empty() && options.instruction != name(what)) continue;
    const auto found = unit_of(what, capability);
    if (!found || (options.unit && *options.unit != found->unit)) continue;
    const shape s = shape_of(what);
    const auto row = find_tensor_row(found->unit, *tensor_operands_of(s.a, s.b));
    if (!row) continue;
    findings.push_back(inspection(on, options, what, *row, found->listed).run());
    if (options.on_result) options.on_result(findings.back());
  }
  require<unsupported>(!findings.empty(), "nothing to check: ", on.name(), ", compute capability ",
                       capability / 10, ".", capability % 10, ", has no such instruction");
  return findings;
}

}  // namespace samebits
