// Codes and scales of other libraries, as their own code computed them, against the recipes here.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "golden/recipes/inputs.hpp"
#include "golden/recipes/sha256.hpp"
#include "samebits/delayed_scaling.hpp"
#include "samebits/recipe.hpp"

namespace samebits {
namespace {

using bytes = std::vector<std::uint8_t>;

// As recordings.py has them.
constexpr std::size_t history_length = 16;
constexpr std::uint32_t near_ulps = 44;

struct answer {
  bytes codes;
  bytes scales;
};

/// A line `case` of recordings.py, and its lines `row`.
struct recorded_case {
  std::string name, mode, format, origin, input, codes, scales;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<std::string> code_rows;
  std::string listed_scales;
};

struct recording {
  std::string preset;
  std::vector<recorded_case> cases;
};

recording read_recording(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path.string() + ": cannot be read");
  recording r;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "#") {
      words >> word;
      if (word == "preset:") words >> r.preset;
    } else if (word == "case") {
      recorded_case c;
      words >> c.name >> c.mode >> c.format >> c.rows >> c.cols >> c.origin >> c.input >> c.codes >>
          c.scales;
      if (!words || c.scales.size() != 64) throw std::runtime_error("a case is cut off");
      r.cases.push_back(c);
    } else if (word == "row") {
      std::string codes, scales;
      words >> codes >> scales;
      r.cases.back().code_rows.push_back(codes);
      if (scales != "-") r.cases.back().listed_scales += scales;
    } else {
      throw std::runtime_error(path.string() + ": not a line of a recording: " + word);
    }
  }
  return r;
}

format_id format_named(const std::string& name) {
  if (name == "fp32") return format_id::fp32;
  if (name == "bf16") return format_id::bf16;
  if (name == "fp16") return format_id::fp16;
  throw std::runtime_error("format: expected fp32, bf16 or fp16");
}

std::string hexadecimal(const std::uint8_t* data, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += "0123456789abcdef"[data[i] >> 4];
    text += "0123456789abcdef"[data[i] & 15];
  }
  return text;
}

/// As recordings.py's clear_unclaimed().
void clear_unclaimed(bytes& in, const recorded_case& c, bool infinite) {
  const format_id format = format_named(c.format);
  const golden::fields f = golden::fields_of(format);
  const std::size_t width = format == format_id::fp32 ? 4 : 2;
  const std::size_t row_bytes = static_cast<std::size_t>(c.cols) * width;
  for (std::size_t at = 0; at < in.size(); at += row_bytes) {
    std::uint32_t amax = 0;
    for (std::size_t i = at; i < at + row_bytes; i += width) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &in[i], width);
      amax = std::max(amax, bits & ((1u << (f.exponent_bits + f.bits)) - 1));
    }
    float a;
    if (format == format_id::fp16) {
      a = static_cast<float>(fp16::from_bits(static_cast<std::uint16_t>(amax)));
    } else {
      a = std::bit_cast<float>(amax << (23 - f.bits));
    }
    const auto s = std::bit_cast<std::uint32_t>(448.0f / a);
    const bool near = (s & 0x7FFFFF) > 0x7FFFFF - near_ulps;
    if (near || (infinite && s == 0x7F800000)) {
      std::fill_n(in.begin() + static_cast<std::ptrdiff_t>(at), row_bytes, std::uint8_t{0});
    }
  }
}

std::vector<std::string> parts_of(const std::string& origin) {
  std::vector<std::string> parts;
  std::istringstream text(origin);
  for (std::string part; std::getline(text, part, ':');) parts.push_back(part);
  return parts;
}

bytes input_of(const recorded_case& c) {
  const std::vector<std::string> parts = parts_of(c.origin);
  if (parts.at(0) == "sample") {
    static const bytes sample = [] {
      std::ifstream file(SAMEBITS_GOLDEN_SAMPLE, std::ios::binary);
      return bytes(std::istreambuf_iterator<char>(file), {});
    }();
    const std::size_t size =
        static_cast<std::size_t>(c.rows * c.cols) * (c.format == "fp32" ? 4 : 2);
    const std::size_t offset = std::stoul(parts.at(2));
    if (offset + size > sample.size()) throw std::runtime_error("the sample is too short");
    return {sample.begin() + static_cast<std::ptrdiff_t>(offset),
            sample.begin() + static_cast<std::ptrdiff_t>(offset + size)};
  }
  std::istringstream tile(parts.at(1));
  golden::random_matrix m;
  m.format = format_named(c.format);
  m.rows = c.rows;
  m.cols = c.cols;
  m.shape = golden::profile_named(parts[0]);
  char by = ' ';
  tile >> m.tile_rows >> by >> m.tile_cols;
  m.seed = std::stoull(parts.at(2));
  bytes in = golden::draw_matrix(m);
  if (parts.size() > 3) clear_unclaimed(in, c, parts[3] == "near+inf");
  return in;
}

/// Input, codes and scales of a case, where they lie.
struct buffers {
  bytes input;
  answer out;
  format_id format;
  format_id scale_format;

  [[nodiscard]] std::size_t scale_size() const { return scale_format == format_id::fp32 ? 4 : 1; }
};

/// Runs rows [first, first + count) as one tensor whose scales begin at `first_scale`.
void run_rows(const recipe& rules, const recorded_case& c, buffers& b, std::int64_t first,
              std::int64_t count, std::size_t first_scale, const quantize_options* given,
              quantize_statistics* statistics) {
  const matrix_shape scales = scales_shape(count, c.cols, rules.tile);
  const auto at = static_cast<std::size_t>(first * c.cols);
  const std::size_t width = b.format == format_id::fp32 ? 4 : 2;
  quantize_outputs out;
  out.codes = view_of_codes(rules.code_format, b.out.codes.data() + at, count, c.cols);
  out.scales = view_of_codes(b.scale_format, b.out.scales.data() + first_scale * b.scale_size(),
                             scales.rows, scales.cols);
  out.statistics = statistics;
  const const_matrix_view in =
      view_of_codes(b.format, static_cast<const void*>(b.input.data() + at * width), count, c.cols);
  if (given != nullptr) {
    quantize(in, out, *given);
  } else {
    quantize(in, out, rules);
  }
}

/// Rows are the tensor at successive steps of delayed scaling.
void run_steps(const recipe& rules, const recorded_case& c, buffers& b) {
  std::array<float, history_length> history = {};
  delayed_scale state;
  delayed_settings settings;
  if (c.mode == "steps/recent") settings.choice = history_choice::most_recent;
  for (std::int64_t r = 0; r < c.rows; ++r) {
    quantize_options options = options_of(rules);
    options.inverse_scales = view_of(&state.inverse_scale, 1, 1);
    quantize_statistics statistics;
    run_rows(rules, c, b, r, 1, static_cast<std::size_t>(r), &options, &statistics);
    observe(history, statistics.amax);
    state = updated(state, history, settings);
  }
}

answer run(const recipe& rules, const recorded_case& c, bytes input) {
  buffers b = {std::move(input), {}, format_named(c.format), rules.scale_format};
  b.out.codes.resize(static_cast<std::size_t>(c.rows * c.cols));
  const matrix_shape whole =
      c.mode == "whole" ? scales_shape(c.rows, c.cols, rules.tile) : matrix_shape{c.rows, 1};
  b.out.scales.resize(static_cast<std::size_t>(whole.rows * whole.cols) * b.scale_size());
  if (c.mode == "whole") {
    run_rows(rules, c, b, 0, c.rows, 0, nullptr, nullptr);
  } else if (c.mode == "rows") {
    for (std::int64_t r = 0; r < c.rows; ++r) {
      run_rows(rules, c, b, r, 1, static_cast<std::size_t>(r), nullptr, nullptr);
    }
  } else {
    run_steps(rules, c, b);
  }
  return std::move(b.out);
}

void check_listed(const recorded_case& c, const answer& ours) {
  ASSERT_EQ(c.code_rows.size(), static_cast<std::size_t>(c.rows));
  const auto cols = static_cast<std::size_t>(c.cols);
  for (std::size_t r = 0; r < c.code_rows.size(); ++r) {
    EXPECT_EQ(hexadecimal(ours.codes.data() + r * cols, cols), c.code_rows[r]) << "row " << r;
  }
  EXPECT_EQ(hexadecimal(ours.scales.data(), ours.scales.size()), c.listed_scales);
}

class recipe_golden : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(recipe_golden, HasTheLibrarysBits) {
  const recording r = read_recording(GetParam());
  const recipe_preset* preset = find_recipe(r.preset);
  ASSERT_NE(preset, nullptr) << r.preset;
  EXPECT_EQ(preset->verified, recipe_evidence::library_output);
  std::int64_t elements = 0;
  for (const recorded_case& c : r.cases) {
    SCOPED_TRACE(c.name + " " + c.format + " " + c.mode);
    const bytes input = input_of(c);
    const answer ours = run(preset->rules, c, input);
    const std::string codes = golden::sha256(ours.codes), scales = golden::sha256(ours.scales);
    if (codes != c.codes || scales != c.scales) {
      ASSERT_EQ(golden::sha256(input), c.input) << "not the same input as when it was recorded";
    }
    EXPECT_EQ(codes, c.codes) << "codes";
    EXPECT_EQ(scales, c.scales) << "scales";
    if (!c.code_rows.empty()) check_listed(c, ours);
    elements += c.rows * c.cols;
  }
  EXPECT_GE(elements, 10'000'000);
}

std::vector<std::filesystem::path> recordings(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

INSTANTIATE_TEST_SUITE_P(All, recipe_golden, testing::ValuesIn(recordings(SAMEBITS_GOLDEN_RECIPES)),
                         [](const auto& of) { return of.param.stem().string(); });

/// What a preset's `exceptions` leaves out of its claim for NaN and Inf.
struct unclaimed {
  explicit unclaimed(const recipe_preset& p)
      : nan_sign(says(p, "the sign of NaN codes")),
        codes_under_ff(says(p, "codes of a tile whose byte is FF")),
        scales_of_nan(says(p, "a tile of NaN")),
        nan_scales(says(p, "the bits of a NaN scale")) {}
  static bool says(const recipe_preset& p, std::string_view text) {
    return p.exceptions.find(text) != std::string_view::npos;
  }
  bool nan_sign, codes_under_ff, scales_of_nan, nan_scales;
};

bool is_nan_scale(const std::uint8_t* scale, std::size_t size) {
  std::uint32_t word = 0;
  std::memcpy(&word, scale, size);
  return size == 4 && (word & 0x7FFFFFFF) > 0x7F800000;
}

std::vector<std::uint8_t> bytes_of(const std::string& hexadecimal_text) {
  std::vector<std::uint8_t> all;
  for (std::size_t i = 0; i + 1 < hexadecimal_text.size(); i += 2) {
    all.push_back(
        static_cast<std::uint8_t>(std::stoul(hexadecimal_text.substr(i, 2), nullptr, 16)));
  }
  return all;
}

class recipe_nonfinite : public testing::TestWithParam<std::filesystem::path> {};

/// Tiles with NaN and Inf, element by element, but for what `exceptions` says is not claimed.
TEST_P(recipe_nonfinite, HasTheLibrarysBits) {
  const recording r = read_recording(GetParam());
  const recipe_preset* preset = find_recipe(r.preset);
  ASSERT_NE(preset, nullptr) << r.preset;
  const unclaimed left_out(*preset);
  std::size_t compared = 0, scales_compared = 0;
  for (const recorded_case& c : r.cases) {
    SCOPED_TRACE(c.format + " " + c.origin);
    bytes input = input_of(c);
    ASSERT_EQ(golden::sha256(input), c.input) << "not the same input as when it was recorded";
    const answer ours = run(preset->rules, c, input);
    bytes codes;
    for (const std::string& row : c.code_rows) {
      const bytes of_row = bytes_of(row);
      codes.insert(codes.end(), of_row.begin(), of_row.end());
    }
    const bytes scales = bytes_of(c.listed_scales);
    ASSERT_EQ(codes.size(), ours.codes.size());
    ASSERT_EQ(scales.size(), ours.scales.size());
    const std::int64_t width = preset->rules.tile.cols == 0 ? c.cols : preset->rules.tile.cols;
    const std::size_t tiles = codes.size() / static_cast<std::size_t>(width);
    const std::size_t scale_size = scales.size() / tiles;
    for (std::size_t t = 0; t < tiles; ++t) {
      const auto first = t * static_cast<std::size_t>(width);
      bool only_nan = true;
      for (std::size_t i = first; i < first + static_cast<std::size_t>(width); ++i) {
        only_nan = only_nan && (ours.codes[i] & 0x7F) == 0x7F && (codes[i] & 0x7F) == 0x7F;
      }
      const std::uint8_t *own = &ours.scales[t * scale_size], *its = &scales[t * scale_size];
      const bool nan_scale = is_nan_scale(own, scale_size) && is_nan_scale(its, scale_size);
      if (!(only_nan && left_out.scales_of_nan) && !(nan_scale && left_out.nan_scales)) {
        EXPECT_EQ(hexadecimal(own, scale_size), hexadecimal(its, scale_size))
            << "scale of tile " << t;
        ++scales_compared;
      }
      if (left_out.codes_under_ff && scale_size == 1 && scales[t] == 0xFF) continue;
      for (std::size_t i = first; i < first + static_cast<std::size_t>(width); ++i) {
        const bool both_nan = (ours.codes[i] & 0x7F) == 0x7F && (codes[i] & 0x7F) == 0x7F;
        if (left_out.nan_sign && both_nan) continue;
        ASSERT_EQ(int{ours.codes[i]}, int{codes[i]}) << "code of element " << i;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 1000u);
  EXPECT_GE(scales_compared, 20u);
}

INSTANTIATE_TEST_SUITE_P(All, recipe_nonfinite,
                         testing::ValuesIn(recordings(SAMEBITS_GOLDEN_RECIPES "/nonfinite")),
                         [](const auto& of) { return of.param.stem().string(); });

TEST(RecipeGolden, EveryVerifiedPresetHasARecording) {
  const std::string folder = SAMEBITS_GOLDEN_RECIPES;
  for (const recipe_preset& p : recipe_presets) {
    const std::string file = "/" + std::string(p.name) + ".txt";
    EXPECT_EQ(p.verified == recipe_evidence::library_output, std::filesystem::exists(folder + file))
        << p.name;
    EXPECT_EQ(p.nonfinite == recipe_evidence::library_output,
              std::filesystem::exists(folder + "/nonfinite" + file))
        << p.name;
  }
}

TEST(RecipeGolden, HashIsSha256) {
  const std::string message = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";  // FIPS
  EXPECT_EQ(golden::sha256(bytes(message.begin(), message.end())),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

}  // namespace
}  // namespace samebits
