// What `update` shows, as text and as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/explore/update/weight_life.hpp"
#include "fpinspect/output/output.hpp"
#include "fpinspect/output/terminal.hpp"

namespace fpinspect {

struct update_result {
  update_plan plan;
  std::string_view rule;
  std::string gradient;  ///< the argument
  std::vector<weight_life> lives;
  std::vector<double> exact;
};

std::string update_json(const update_result& result);
std::string update_text(const update_result& result, const terminal& term);

}  // namespace fpinspect
