// Loss scales of other libraries, as their own files produced them, against the policies here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backends/loss_scaler/fields.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/text.hpp"

namespace samebits {
namespace {

constexpr std::uint16_t not_raised = 0xFFFF;

/// Reads a file of tests/golden/loss_scale/trace_format.py.
class recording {
 public:
  explicit recording(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    const std::string magic = "samebits loss scales 1\n";
    if (!std::string(bytes_.begin(), bytes_.end()).starts_with(magic)) {
      throw std::runtime_error(path.string() + ": not a recording");
    }
    at_ = magic.size();
    heading_.resize(take<std::uint32_t>());
    std::memcpy(heading_.data(), bytes_.data() + at_, heading_.size());
    at_ += heading_.size();
  }

  template <class T>
  T take() {
    if (bytes_.size() - at_ < sizeof(T)) throw std::runtime_error("the recording is cut off");
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }

  // Members of the JSON heading, as json.dumps(indent=1) lays them out.
  [[nodiscard]] std::string text(const std::string& key) const {
    const std::string value = after(key);
    return value.substr(1, value.find('"', 1) - 1);
  }
  [[nodiscard]] std::size_t number(const std::string& key) const { return std::stoul(after(key)); }
  [[nodiscard]] std::vector<std::string> list(const std::string& key) const {
    const std::string value = after(key);
    std::vector<std::string> items;
    for (std::size_t from = value.find('"'); from < value.find(']');) {
      const std::size_t to = value.find('"', from + 1);
      items.push_back(value.substr(from + 1, to - from - 1));
      from = value.find('"', to + 1);
    }
    return items;
  }

 private:
  [[nodiscard]] std::string after(const std::string& key) const {
    const std::size_t found = heading_.find("\"" + key + "\": ");
    if (found == std::string::npos) throw std::runtime_error("the heading has no " + key);
    return heading_.substr(found + key.size() + 4);
  }

  std::vector<char> bytes_;
  std::string heading_;
  std::size_t at_ = 0;
};

scaling_policy policy_named(const std::string& text) {
  for (int i = 0; i < enum_count<scaling_policy>; ++i) {
    if (name(static_cast<scaling_policy>(i)) == text) return static_cast<scaling_policy>(i);
  }
  throw std::runtime_error("no policy " + text);
}

class fnv1a {
 public:
  template <class T>
  void add(T value) {
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof value);
    for (const unsigned char byte : bytes) hash_ = (hash_ ^ byte) * 0x100000001B3u;
  }
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325u;
};

std::string option_text(double value) {
  const bool is_integer = std::abs(value) < 0x1p63 && value == std::trunc(value);
  return is_integer ? std::to_string(static_cast<std::int64_t>(value))
                    : to_hex_float(format_id::fp64, detail::bits_of(value));
}

/// Whether a decision names the change of the scale.
bool tells_what_happened(const step_decision& decision, double before, double after) {
  if (decision.apply) {
    return decision.change == (after == before ? scale_change::kept : scale_change::grown);
  }
  const bool lowered = decision.change == scale_change::backed_off;
  // A bad step may raise a scale below the minimum to the minimum, whatever that is called.
  return decision.change != scale_change::grown && (after > before || lowered == (after < before));
}

struct comparison_counts {
  std::uint64_t traces = 0, differing = 0;
  std::uint64_t steps = 0, bad = 0, grown = 0, backed_off = 0, raised = 0;
};

/// Replays one trace; returns what differs, or nothing.
template <class Settings>
std::string replay(recording& file, const Settings& settings, std::size_t steps,
                   comparison_counts& seen) {
  ++seen.traces;
  std::vector<std::uint8_t> bad((steps + 7) / 8), changes((steps + 3) / 4);
  for (std::uint8_t& byte : bad) byte = file.take<std::uint8_t>();
  for (std::uint8_t& byte : changes) byte = file.take<std::uint8_t>();
  const auto raised = file.take<std::uint16_t>();
  const auto last = file.take<double>();
  const auto digest = file.take<std::uint64_t>();

  auto state = initial_state(settings);
  bool stopped = false;
  fnv1a hash;
  for (std::size_t step = 0; step < steps; ++step) {
    const bool nonfinite = ((bad[step / 8] >> step % 8) & 1) != 0;
    const double before = scale_of(state);
    hash.add(before);
    if (!stopped) {
      const step_decision decision = advance(settings, state, {.nonfinite = nonfinite});
      if (decision.apply == nonfinite) return "step " + std::to_string(step) + ": apply";
      if (!tells_what_happened(decision, before, scale_of(state))) {
        return "step " + std::to_string(step) + ": change";
      }
      stopped = decision.stop;
      if (stopped != (raised == step)) return "step " + std::to_string(step) + ": stop";
    }
    const double after = scale_of(state);
    const int change = after > before ? 1 : after < before ? 2 : 0;
    if (change != ((changes[step / 4] >> step % 4 * 2) & 3)) {
      return "step " + std::to_string(step) + ": the scale after it";
    }
    ++seen.steps;
    seen.bad += nonfinite ? 1 : 0;
    seen.grown += change == 1 ? 1 : 0;
    seen.backed_off += change == 2 ? 1 : 0;
  }
  backends::for_each_field(state, [&](std::string_view field, const auto& value) {
    if (!field.ends_with("scale")) hash.add(static_cast<std::int64_t>(value));  // counters
  });
  seen.raised += raised != not_raised ? 1 : 0;
  if (scale_of(state) != last) return "the last scale";
  return hash.value() != digest ? "the scales' bits or the counters" : "";
}

comparison_counts replay_all(const std::filesystem::path& path) {
  recording file(path);
  const scaling_policy policy = policy_named(file.text("policy"));
  const std::vector<std::string> names = file.list("settings");
  comparison_counts seen;
  for (std::size_t trace = 0; trace < file.number("traces"); ++trace) {
    scaling_settings settings = default_settings(policy);
    std::string shown;
    for (const std::string& setting : names) {
      const std::string value = option_text(file.take<double>());
      set_option(settings, setting, value);
      shown += " " + setting + "=" + value;
    }
    check_settings(settings);
    const std::string difference = std::visit(
        [&](const auto& s) { return replay(file, s, file.number("steps"), seen); }, settings);
    if (!difference.empty() && seen.differing++ == 0) {
      ADD_FAILURE() << path << ", trace " << trace << ":" << shown << ": " << difference;
    }
  }
  EXPECT_TRUE(file.at_end());
  return seen;
}

TEST(LossScaleGolden, Recordings) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(SAMEBITS_GOLDEN_TRACES)) {
    if (entry.path().extension() == ".trace") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  EXPECT_GE(paths.size(), 4u);
  for (const std::filesystem::path& path : paths) {
    const comparison_counts seen = replay_all(path);
    EXPECT_EQ(seen.differing, 0u) << path;
    EXPECT_EQ(seen.traces, 1000u);
    EXPECT_GT(seen.grown, 1000u);  // a recording in which nothing happens would show nothing
    EXPECT_GT(seen.backed_off, 1000u);
    std::cout << path.filename().string() << ": " << seen.traces << " traces, " << seen.steps
              << " steps, " << seen.bad << " bad, " << seen.grown << " grown, " << seen.backed_off
              << " backed off, " << seen.raised << " raised\n";
  }
}

/// No recording has one. apex.amp halves the scale and doubles it in the same step; PyTorch's never grows.
TEST(LossScaleGolden, IntervalOfZero) {
  const apex_amp_scaling amp{8.0, 0, 0.0, 1024.0};
  auto amp_state = initial_state(amp);
  EXPECT_EQ(advance(amp, amp_state, {.nonfinite = true}).change, scale_change::backed_off);
  EXPECT_EQ(scale_of(amp_state), 8.0);
  EXPECT_EQ(advance(amp, amp_state, {}).change, scale_change::kept);
  const torch_scaling torch{8.0, 2.0, 0.5, 0};
  auto torch_state = initial_state(torch);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(advance(torch, torch_state, {}).change, scale_change::kept);
  }
}

}  // namespace
}  // namespace samebits
