// Attention as cases, and the rule of contract §16 row by row.
#pragma once

#include <cstdint>

#include "engine/core/problem.hpp"
#include "samebits/attention.hpp"

namespace samebits::support {

struct attention_case {
  attention_options options = {};
  bool backward = false;
  format_id format = format_id::bf16;
  std::int64_t batch = 1, heads = 1, queries = 1, keys = 1;
  int dimension = 64;
  bool gaps = false;         ///< rows of q and k lie apart in memory
  bool heads_inner = false;  ///< memory order [batch, length, heads, dimension]
  int special = 0;           ///< one number of so many is Inf, NaN, large or subnormal; 0: none
  int threads = 1;
  std::uint64_t content = 0;
};
void describe(attention_case& c, case_fields& fields);

/// Whether a case asks for dQ: that of cuDNN has no rule above 256 keys.
bool wants_dq(const attention_case& c);

/// What the rule returns, one query or one block of keys after another.
returned_values attention_by_rule(const attention_case& c, const call_site& site);

}  // namespace samebits::support
