// Statistics of casts: check arguments.
#include "samebits/cast_statistics.hpp"

#include <string>

#include "backends/api/view_checks.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/reference/reference.hpp"
#include "backends/reference/statistics/element_passes.hpp"
#include "backends/self_test/self_test.hpp"

namespace samebits {
namespace {

void check_format(const std::string& which, format_id format) {
  const int number = static_cast<int>(format);
  if (number >= format_count) backends::refuse_value(which.c_str(), number, "format_id");
}

void check_request(const statistics_request& request) {
  check_format("request.format", request.format);
  for (std::size_t i = 0; i < request.casts.size(); ++i) {
    const std::string which = "request.casts[" + std::to_string(i) + "]";
    const format_id to = request.casts[i];
    check_format(which, to);
    refuse_if(to == format_id::fp64 || to == format_id::e8m0, which,
              ": must have a sign and fewer bits than fp64, got ", to);
  }
  refuse_if(request.scale_log2 < -127 || request.scale_log2 > 127,
            "request.scale_log2: must be in -127..127, got ", request.scale_log2);
}

}  // namespace

statistics_pass::statistics_pass(const statistics_request& request, const matrix_shape& shape,
                                 const executor& where) {
  check_request(request);
  refuse_if(shape.rows < 0 || shape.cols < 0 ||
                static_cast<__int128>(shape.rows) * shape.cols > INT64_MAX,
            "shape: must have sizes >= 0 and fewer than 2^63 elements, got ", shape);
  backends::check_threads(where);
  const backends::backend& chosen =
      backends::resolve(where, memory_space::host, [](const auto&) { return true; });
  backends::check_memory(chosen, memory_space::host);
  backends::require_tested(backends::reference);
  passes_ = backends::element_passes::make(request, shape, {chosen.name, where.threads});
}

statistics_pass::~statistics_pass() = default;
statistics_pass::statistics_pass(statistics_pass&&) noexcept = default;
statistics_pass& statistics_pass::operator=(statistics_pass&&) noexcept = default;

void statistics_pass::add(const const_matrix_view& elements) {
  backends::check_view(elements, "elements");
  refuse_if(elements.format != passes_->format, "elements: format must be that of the request, ",
            passes_->format, ", got ", elements.format);
  refuse_if(elements.space != memory_space::host,
            "elements: must lie in host memory; copy them to the host");
  refuse_if(elements.rows * elements.cols > passes_->missing, "elements: of ",
            elements.rows * elements.cols, " in the view, the pass takes ", passes_->missing,
            " more");
  backends::require_tested(backends::reference);
  passes_->add(elements);
}

bool statistics_pass::again() {
  refuse_if(passes_->missing != 0, "again: ", passes_->missing,
            " elements are missing; add() takes all elements in every pass");
  backends::require_tested(backends::reference);
  return passes_->next_pass();
}

cast_statistics statistics_pass::result() const {
  refuse_if(!passes_->done, "result: passes are missing; add the elements until again() is false");
  return passes_->result();
}

cast_statistics statistics_of(const const_matrix_view& elements, statistics_request request,
                              const executor& where) {
  request.format = elements.format;
  statistics_pass pass(request, {elements.rows, elements.cols}, where);
  do {
    pass.add(elements);
  } while (pass.again());
  return pass.result();
}

}  // namespace samebits
