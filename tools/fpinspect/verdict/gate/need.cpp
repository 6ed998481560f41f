// What a format must keep: implementation.
#include "fpinspect/verdict/gate/need.hpp"

#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/verdict/gate/condition.hpp"

namespace fpinspect {

bool need::allows(std::uint64_t lost, std::uint64_t nonzero) const {
  if (lost == 0) return true;
  return 100.0 * static_cast<double>(lost) < underflow_percent * static_cast<double>(nonzero);
}

need need_argument(const std::vector<std::string>& texts) {
  need result;
  for (const std::string& text : texts) {
    const auto level = parse_quantity(text);
    const auto limit = parse_condition(text);
    if (level && level->unit == "dB") {
      result.db = level->number;
    } else if (limit && limit->subject.empty() && limit->figure == "underflow" &&
               limit->how == relation::less && limit->limit.unit == "%") {
      result.underflow_percent = limit->limit.number;
    } else {
      throw usage_error(cat("--need: \"", text, "\" is neither like 30dB nor like 'underflow<1%'"));
    }
  }
  return result;
}

}  // namespace fpinspect
