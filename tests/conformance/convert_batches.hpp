// Random array conversions in batches: many cases lie in one block of memory, which a device target
// copies there once and back once. A failing case is shrunk alone.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "oracle/philox.hpp"
#include "samebits/convert.hpp"
#include "support/array_generators.hpp"
#include "support/conversion_case.hpp"
#include "support/rules.hpp"
#include "support/strided_buffer.hpp"

namespace samebits::support {

/// One conversion of a batch; both views lie in the batch's memory, on the host.
struct batch_call {
  const_matrix_view in;
  matrix_view out;
  convert_options options;
  int threads = 1;
};

/// An executor under test.
struct batch_target {
  std::string name;
  /// Carries out all calls, as if in place. The memory starts at a 256-byte border.
  std::function<void(std::span<std::byte> memory, const std::vector<batch_call>& calls)> run;
  std::vector<std::pair<format_id, format_id>> pairs = {};  ///< empty: every pair
  std::vector<cast_rule> rules = {};                        ///< empty: every rule
};

struct batch_effort {
  int batches = 64;
  int cases = 64;  ///< of one batch
  std::uint64_t seed = 0;
};

/// What the batches showed.
struct batch_report {
  std::uint64_t cases = 0;
  std::uint64_t elements = 0;          ///< compared with the oracle
  std::string failure = {};            ///< empty if nothing differs
  std::optional<array_case> smallest;  ///< the failing case, shrunk
};

/// Draws cases and judges every element by the oracle; the first failing case ends it.
class batch_checker {
 public:
  batch_checker(batch_target target, const batch_effort& effort)
      : target_(std::move(target)), effort_(effort) {
    if (!target_.pairs.empty()) return;
    for (const format_id from : all_formats()) {
      for (const format_id to : all_formats()) target_.pairs.emplace_back(from, to);
    }
  }

  batch_report run() {
    rc::Random random(effort_.seed);
    batch_report report;
    for (int batch = 0; batch < effort_.batches; ++batch) {
      std::vector<rc::Shrinkable<array_case>> drawn;
      std::vector<array_case> cases;
      for (int i = 0; i < effort_.cases; ++i) {
        drawn.push_back(draw(report.cases++, random));
        cases.push_back(drawn.back().value());
      }
      const outcome found = run_cases(cases);
      report.elements += found.elements;
      if (found.text.empty()) continue;
      describe(report, drawn[found.failing], found.text, batch);
      break;
    }
    return report;
  }

 private:
  struct outcome {
    std::string text = {};  ///< empty if nothing differs
    std::size_t failing = 0;
    std::uint64_t elements = 0;
  };

  /// Pairs take turns, so that none is left out; every second case is dense.
  rc::Shrinkable<array_case> draw(std::uint64_t number, rc::Random& random) const {
    const auto pair = target_.pairs[number % target_.pairs.size()];
    return rc::gen::map(array_cases(), [pair, rules = target_.rules](array_case c) {
      c.from = pair.first;
      c.to = pair.second;
      if (!rules.empty()) c.rule = rules[c.content % rules.size()];
      if (c.content >> 63 == 0) {  // what kernels are written for: dense, from an aligned start
        c.in = c.out = {c.in.rows, c.in.cols, c.in.cols, 1, 0};
      }
      return c;
    })(random.split());
  }

  /// Codes chosen for a pair of formats, made once; a case starts somewhere among them.
  const std::vector<std::uint64_t>& pool_for(format_id from, format_id to) {
    std::vector<std::uint64_t>& pool = pools_[{from, to}];
    if (pool.empty()) {
      array_case c;
      c.from = from;
      c.to = to;
      c.in = {1, 4099, 4099, 1, 0};  // a prime: no stride falls in step with it
      c.content = effort_.seed;
      pool = content_of(c);
    }
    return pool;
  }

  strided_buffer filled(const array_case& c) {
    strided_buffer in(c.from, c.in);
    const std::vector<std::uint64_t>& pool = pool_for(c.from, c.to);
    for (std::int64_t i = 0; i < c.in.span(); ++i) {
      in.store(i, pool[(c.content + static_cast<std::uint64_t>(i)) % pool.size()]);
    }
    return in;
  }

  outcome run_cases(const std::vector<array_case>& cases) {
    std::vector<strided_buffer> ins;
    std::vector<strided_buffer> outs;
    std::size_t size = 0;
    for (const array_case& c : cases) {
      ins.push_back(filled(c));
      outs.emplace_back(c.to, c.out);
      size += slot(ins.back()) + slot(outs.back());
    }
    std::vector<std::byte> block(size + border);
    std::byte* const memory =
        block.data() + (border - reinterpret_cast<std::uintptr_t>(block.data()) % border) % border;

    std::vector<batch_call> calls;
    std::byte* next = memory;
    const auto place = [&next](strided_buffer& buffer) {
      std::copy(buffer.bytes().begin(), buffer.bytes().end(), next);
      matrix_view view = buffer.view();
      view.data = next + (static_cast<std::byte*>(view.data) - buffer.bytes().data());
      next += slot(buffer);
      return view;
    };
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const array_case& c = cases[i];
      const matrix_view in = place(ins[i]);
      const matrix_view out = place(outs[i]);
      calls.push_back(
          {in, out, {c.rule.round, c.rule.on_overflow, c.rule.on_nan, c.random}, c.threads});
    }
    target_.run({memory, size}, calls);

    outcome result;
    next = memory;
    for (std::size_t i = 0; i < cases.size() && result.text.empty(); ++i) {
      const std::vector<std::byte> after(next, next + ins[i].bytes().size());
      next += slot(ins[i]);
      outs[i].bytes().assign(next, next + outs[i].bytes().size());
      next += slot(outs[i]);
      result.failing = i;
      if (after != ins[i].bytes()) result.text = "it wrote to its input";
      if (!outs[i].guards_are_intact()) result.text = "it wrote outside its output";
      if (result.text.empty()) result.text = difference(cases[i], ins[i], outs[i]);
      result.elements += static_cast<std::uint64_t>(cases[i].in.rows * cases[i].in.cols);
    }
    return result;
  }

  /// Empty, or what the first wrong element is.
  [[nodiscard]] std::string difference(const array_case& c, const strided_buffer& in,
                                       const strided_buffer& out) const {
    for (std::int64_t row = 0; row < c.in.rows; ++row) {
      for (std::int64_t col = 0; col < c.in.cols; ++col) {
        conversion_case e{c.from, c.to, in.at(row, col), c.rule};
        if (c.rule.round == rounding::stochastic) {
          const std::uint64_t index = oracle::element_index(
              c.random, static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(col),
              static_cast<std::uint64_t>(c.in.cols));
          e.origin = {{c.random.seed, c.random.stream, index}};
          e.random = {oracle::random_word(c.random.seed, c.random.stream, index, c.random.bits),
                      c.random.bits};
        }
        const std::uint64_t got = out.at(row, col);
        const std::uint64_t expected = expected_code(e);
        if (got == expected) continue;
        e.where = target_.name;
        return same_code(e, got, expected).message() + ("\n  element [" + std::to_string(row)) +
               ", " + std::to_string(col) + "]";
      }
    }
    return {};
  }

  /// Shrinks by runs of one case each.
  void describe(batch_report& report, rc::Shrinkable<array_case> failing, std::string text,
                int batch) {
    const auto fails = [&](const array_case& c) {
      const outcome alone = run_cases({c});
      if (!alone.text.empty()) text = alone.text;
      return !alone.text.empty();
    };
    std::ostringstream words;
    if (fails(failing.value())) {
      for (bool simpler = true; simpler;) {
        simpler = false;
        for (rc::Seq<rc::Shrinkable<array_case>> candidates = failing.shrinks(); !simpler;) {
          const auto candidate = candidates.next();
          if (!candidate) break;
          if (!fails(candidate->value())) continue;
          failing = *candidate;
          simpler = true;
        }
      }
      words << text << "\n  of the smallest failing case: ";
    } else {
      words << text << "\n  in a batch only, not alone: ";
    }
    words << failing.value() << "\n  on " << target_.name << ", batch " << batch
          << "; repeat with: RC_PARAMS=\"seed=" << effort_.seed << "\"";
    report.smallest = failing.value();
    report.failure = words.str();
  }

  static constexpr std::size_t border = 256;  // bytes
  static std::size_t slot(const strided_buffer& buffer) {
    return (buffer.bytes().size() + border - 1) / border * border;
  }

  batch_target target_;
  batch_effort effort_;
  std::map<std::pair<format_id, format_id>, std::vector<std::uint64_t>> pools_;
};

}  // namespace samebits::support
