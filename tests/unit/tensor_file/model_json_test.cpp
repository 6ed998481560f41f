// model_json: changed members of config.json, and precision maps.
#include "tensor_file/safetensors/model_json.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tensor_file/error.hpp"

namespace samebits::tensor_file {
namespace {

std::string refusal(const auto& f) {
  try {
    f();
  } catch (const file_error& error) {
    EXPECT_EQ(error.kind(), error_kind::malformed);
    return error.what();
  }
  return "";
}

TEST(ModelJson, ChangedMembersAndTheOrderOfAllOthers) {
  const std::string text = R"({"z": 1e-6, "dtype": "float16", "b": {"y": 1, "x": [2]}, "q": 1})";
  EXPECT_EQ(changed_config(text, {{"q", std::nullopt},
                                  {"none", std::nullopt},
                                  {"dtype", "\"float32\"", true},
                                  {"torch_dtype", "\"float32\"", true},
                                  {"new", R"({"k": [1]})"}}),
            "{\n  \"z\": 1e-06,\n  \"dtype\": \"float32\",\n  \"b\": {\n    \"y\": 1,\n    "
            "\"x\": [\n      2\n    ]\n  },\n  \"new\": {\n    \"k\": [\n      1\n    ]\n  }\n}\n");
  EXPECT_TRUE(has_quantization_config(R"({"quantization_config": {}})"));
  EXPECT_FALSE(has_quantization_config(R"({"a": {"quantization_config": {}}})"));
  EXPECT_EQ(refusal([] { return changed_config("[]", {}); }), "expected an object");
  EXPECT_EQ(refusal([] { return changed_config("{\"a\": 1, \"a\": 2}", {}); }),
            "\"a\" occurs twice");
  EXPECT_EQ(refusal([] { return has_quantization_config("{"); }), "not JSON at byte 2");
}

TEST(ModelJson, MapsKeepTheOrderOfTheirPatterns) {
  using layers = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(parse_precision_map(
                R"({"layers": {"z": "bf16", "*": "TE_CURRENT"}, "version": 1, "comment": 5})"),
            (layers{{"z", "bf16"}, {"*", "TE_CURRENT"}}));
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"version": 1})", "layers: expected an object of patterns"},
      {R"({"version": 1, "layers": []})", "layers: expected an object of patterns"},
      {R"({"layers": {}})", "version: must be 1"},
      {R"({"version": true, "layers": {}})", "version: must be 1"},
      {R"({"version": 1.0, "layers": {}})", "version: must be 1"},
      {R"({"version": 1, "layers": {}, "x": 1})",
       "\"x\" is no entry; there are version, layers, comment"},
      {R"({"version": 1, "layers": {"": "bf16"}})",
       "layers: a pattern is empty; write \"*\" for every layer"},
      {R"({"version": 1, "layers": {"a": "x", "a": "y"}})", "\"a\" occurs twice"}};
  for (const auto& [text, message] : wrong) {
    EXPECT_EQ(refusal([&] { return parse_precision_map(text); }), message) << text;
  }
}

}  // namespace
}  // namespace samebits::tensor_file
