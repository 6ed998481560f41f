// Checks of the instructions of the current device, family by family, and of recorded results.
#include "tensor_core_probe/check.hpp"

#include <algorithm>

#include "backends/dispatch/refuse.hpp"
#include "gpu_probe/usable_device.hpp"
#include "tensor_core_probe/tiles.hpp"

// Defined in the CMake target samebits_tensor_core_gpu, whose link options pull the symbol in; null
// in a program without that library.
extern "C" [[gnu::weak]] const samebits::backends::tensor_cores::device*
samebits_tensor_core_device();

namespace samebits {
namespace {

using namespace backends::tensor_cores;
using detail::cat;

const device& current_device() {
  return usable_device(samebits_tensor_core_device, "tensor cores",
                       "samebits_tensor_core_gpu, which needs a build with CUDA");
}

void check_options(const tensor_core_check_options& options) {
  constexpr std::uint64_t max_cases = std::uint64_t{1} << 30;
  require(options.cases >= 1 && options.cases <= max_cases, "options.cases must be 1 to 2^30, got ",
          options.cases);
  require(options.keep >= 0 && options.keep <= tile_columns, "options.keep must be 0 to 8, got ",
          options.keep);
  const auto known = tensor_core_instruction_names();
  if (options.instruction.empty() || std::ranges::count(known, options.instruction) != 0) return;
  std::string names;
  for (const std::string_view n : known) names += cat(names.empty() ? "" : ", ", n);
  refuse("options.instruction must be one of ", names, ", got ", options.instruction);
}

/// The comparison of one instruction's results with the rule of its row.
class comparison {
 public:
  /// listed: the row was stated for this exact GPU
  comparison(std::string_view instruction, const tensor_arithmetic& row, const shape& s,
             bool listed)
      : rule_(numerics::accumulate_rule_of(row, s.a, s.b, s.result, s.products)) {
    finding_.instruction = instruction;
    finding_.unit = row.unit;
    finding_.known = evidence_of(row, s.result);
    finding_.confirmed =
        listed && (finding_.known == evidence::hardware || finding_.known == evidence::published);
  }

  [[nodiscard]] const accumulate_rule& rule() const { return rule_; }

  void add(std::uint64_t compared, std::uint64_t differed) {
    finding_.compared += compared;
    finding_.differed += differed;
  }
  /// Records a result for the search. `of` names the result in the text of the first difference.
  void see(std::string_view of, const tensor_core_result& r, std::uint32_t expected) {
    seen_.push_back(r);
    if (r.d == expected || !finding_.first_difference.empty()) return;
    finding_.first_difference =
        cat(of, ": got ", hexadecimal(r.d), ", expected ", hexadecimal(expected), ": ", text_of(r));
  }
  void keep(const tensor_core_result& r) { finding_.kept.push_back(r); }

  tensor_core_finding finish(const tensor_core_check_options& options) {
    if (finding_.differed != 0 && options.fit) finding_.fit = fit(rule_, seen_);
    if (options.on_result) options.on_result(finding_);
    return std::move(finding_);
  }

 private:
  accumulate_rule rule_;
  tensor_core_finding finding_{};
  std::vector<tensor_core_result> seen_;
};

/// Compares one family of operands of an instruction.
void compare_family(comparison& c, const device& on, const tensor_core_check_options& options,
                    instruction what, tensor_unit unit, int family) {
  const auto rows = static_cast<std::size_t>(rows_of(what));
  const auto tiles = static_cast<std::uint32_t>((options.cases + rows - 1) / rows);
  const random_tiles operands = draw_tiles(what, family, options.seed, tiles);
  const job j = {what, c.rule(), tiles, operands.a.data(), operands.b.data(), operands.c.data()};
  const outcome got = on.run(j);
  c.add(results_of(j) * partners_of(tiles), got.differing);
  const auto result_at = [&](const result_place& at, std::uint32_t d) {
    return tensor_core_result{unit, shape_of(what), case_at(j, at), d};
  };
  for (const difference& d : got.first) {
    c.see(family_name(family), result_at(d.at, d.got), d.expected);
  }
  // The results on the diagonals of tiles are the cases themselves.
  constexpr std::size_t max_seen = 64;
  for (std::size_t t = 0; t < std::min<std::size_t>(tiles, max_seen); ++t) {
    for (std::size_t r = 0; r < tile_columns; ++r) {
      const std::size_t index = (t * rows + r) * tile_columns + r;
      const tensor_core_result own = result_at({index, t}, got.own[index]);
      c.see(family_name(family), own, own.d);
      if (t == 0 && r < static_cast<std::size_t>(options.keep)) c.keep(own);
    }
  }
}

/// The name of a unit's instruction, or what it does.
std::string name_of(tensor_unit unit, const shape& s) {
  if (const auto i = find_instruction(unit, s)) return std::string(name(*i));
  return cat(s.a, " x ", s.b, " + ", s.result, ", ", s.products, " products");
}

}  // namespace

tensor_core_gpu current_tensor_core_gpu() {
  const device& d = current_device();
  const int capability = d.capability();
  return {d.name(), capability / 10, capability % 10};
}

std::vector<std::string_view> tensor_core_instruction_names() {
  std::vector<std::string_view> names;
  for (const instruction_row& row : instruction_rows) names.push_back(row.name);
  return names;
}

std::vector<tensor_core_finding> check_tensor_cores(const tensor_core_check_options& options) {
  check_options(options);
  const device& on = current_device();
  const int capability = on.capability();
  std::vector<tensor_core_finding> findings;
  for (int i = 0; i < instruction_count; ++i) {
    const auto what = static_cast<instruction>(i);
    if (!options.instruction.empty() && options.instruction != name(what)) continue;
    const auto found = unit_of(what, capability);
    if (!found || (options.unit && *options.unit != found->unit)) continue;
    const auto row = find_row(found->unit, shape_of(what));
    if (!row) continue;
    comparison c(name(what), *row, shape_of(what), found->listed);
    for (int f = 0; f < family_count; ++f) compare_family(c, on, options, what, found->unit, f);
    findings.push_back(c.finish(options));
  }
  require<unsupported>(!findings.empty(), "nothing to check: ", on.name(), ", compute capability ",
                       capability / 10, ".", capability % 10, ", has no such instruction");
  return findings;
}

std::vector<tensor_core_finding> check_tensor_core_results(
    std::span<const tensor_core_result> results, const tensor_core_check_options& options) {
  std::vector<std::vector<tensor_core_result>> of_instructions;  // by the first result of each
  for (std::size_t i = 0; i < results.size(); ++i) {
    const tensor_core_result& r = results[i];
    require(find_row(r.unit, r.operands).has_value(), "results[", i,
            "] must be of an instruction that its unit has");
    const auto at = std::ranges::find_if(of_instructions, [&](const auto& others) {
      return others[0].unit == r.unit && others[0].operands == r.operands;
    });
    (at == of_instructions.end() ? of_instructions.emplace_back() : *at).push_back(r);
  }
  std::vector<tensor_core_finding> findings;
  for (const auto& of_instruction : of_instructions) {
    const auto& [unit, s, x, d] = of_instruction[0];
    const std::string instruction = name_of(unit, s);
    if (options.unit && *options.unit != unit) continue;
    if (!options.instruction.empty() && options.instruction != instruction) continue;
    comparison c(instruction, *find_row(unit, s), s, true);
    for (const tensor_core_result& r : of_instruction) {
      const std::uint32_t expected = result_of(c.rule(), r.x);
      c.add(1, r.d == expected ? 0 : 1);
      c.see("recorded", r, expected);
    }
    findings.push_back(c.finish(options));
  }
  return findings;
}

}  // namespace samebits
