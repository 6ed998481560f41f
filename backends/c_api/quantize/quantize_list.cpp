// Lists of tensors to quantize through the C interface.
#include "samebits/quantize_list.hpp"

#include <string>
#include <utility>
#include <vector>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/quantize/quantize_fields.hpp"
#include "samebits/c/quantize_list.h"

namespace api = samebits::c_api;

struct samebits_quantize_list {
  samebits::quantize_list list;
};

namespace {

std::vector<samebits::quantize_item> items_of(const samebits_quantize_item* items, size_t count) {
  api::check_array(items, count, "items");
  std::vector<samebits::quantize_item> all;
  all.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const samebits_quantize_item& item = items[i];
    samebits::quantize_outputs outputs = {
        .codes = api::optional_view(item.codes, "items[].codes"),
        .scales = api::optional_view(item.scales, "items[].scales"),
        .codes_transposed = api::optional_view(item.codes_transposed, "items[].codes_transposed"),
        .scales_transposed =
            api::optional_view(item.scales_transposed, "items[].scales_transposed")};
    all.push_back(
        {.in = api::view(item.in, "items[].in"),
         .outputs = outputs,
         .inverse_scales = api::optional_view(item.inverse_scales, "items[].inverse_scales"),
         .name = std::string(api::text(item.name))});
  }
  return all;
}

/// Creates a list. `Rule` is quantize_options or recipe.
template <class Rule>
samebits_quantize_list* new_list(const samebits_quantize_item* items, size_t count,
                                 const Rule& rule) {
  return new samebits_quantize_list{samebits::quantize_list(items_of(items, count), rule)};
}

}  // namespace

samebits_status samebits_quantize_list_create(const samebits_quantize_item* items, size_t count,
                                              const samebits_quantize_options* options,
                                              samebits_quantize_list** list) {
  return api::guarded([&] {
    samebits_quantize_list*& out = api::required(list, "list");
    out = new_list(items, count, api::options(options));
  });
}

samebits_status samebits_quantize_list_create_by_recipe(const samebits_quantize_item* items,
                                                        size_t count, const samebits_recipe* recipe,
                                                        samebits_quantize_list** list) {
  return api::guarded([&] {
    samebits_quantize_list*& out = api::required(list, "list");
    out = new_list(items, count, api::rules(recipe));
  });
}

void samebits_quantize_list_destroy(samebits_quantize_list* list) { delete list; }

samebits_status samebits_quantize_list_run(const samebits_quantize_list* list,
                                           const samebits_executor* where) {
  return api::guarded(
      [&] { samebits::quantize(api::required(list, "list").list, api::where(where)); });
}
