// The index of a model in several files: what is read, and what is refused.
#include "tensor_file/safetensors/model_json.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support.hpp"
#include "tensor_file/error.hpp"

namespace samebits::tensor_file {
namespace {

TEST(ShardIndex, TheFileOfEachTensor) {
  EXPECT_EQ(parse_shard_index(R"({"metadata": {"total_size": 8, "x": [1, {"weight_map": "no"}]},
                                  "weight_map": {"b": "2.safetensors", "a": "1.safetensors",
                                                 "c": "2.safetensors"}, "more": null})"),
            (shard_map{{"a", "1.safetensors"}, {"b", "2.safetensors"}, {"c", "2.safetensors"}}));
  EXPECT_EQ(parse_shard_index(R"({"weight_map": {}})"), shard_map{});
  // A key may occur in several objects.
  EXPECT_EQ(parse_shard_index(R"({"a": [{"a": 1}, {"a": {"a": 1}}], "weight_map": {"a": "a"}})"),
            (shard_map{{"a", "a"}}));
  EXPECT_TRUE(is_shard_index("a/model.safetensors.index.json"));
  EXPECT_FALSE(is_shard_index("a.index.json/model.safetensors"));
}

void expect_refused(const std::string& text) {
  SCOPED_TRACE(text);
  testing::expect_refused([&] { parse_shard_index(text); }, error_kind::malformed, "");
}

TEST(ShardIndex, Refused) {
  for (const char* map :
       {"[1]", R"("x")", "null", R"({"a": 1})", R"({"a": {}})", R"({"a": ["x"]})", R"({"a": ""})",
        R"({"a": "../x"})", R"({"a": "/x"})", R"({"a": ".."})", R"({"a": "x\u0000y"})",
        R"({}, "weight_map": {})", R"({"a": "x", "a": "x"})", R"({"a": "x", "\u0061": "y"})",
        R"({}, "x": 1, "x": 1)", R"({}, "x": [{"y": 1, "y": 1}])", R"({}, "x": 1e999)"}) {
    expect_refused("{\"weight_map\": " + std::string(map) + "}");
  }
  for (const char* text : {"", "[]", "1", "\"x\"", "{}", "{",
                           R"({"x": {"weight_map": {"a": "b"}}})", R"({"weight_map": {}} x)"}) {
    expect_refused(text);
  }
  expect_refused("{\"x\": " + std::string(100, '['));
}

TEST(ShardIndex, MissingFile) {
  try {
    read_shard_index("/nowhere/model.index.json");
    ADD_FAILURE();
  } catch (const file_error& error) {
    EXPECT_EQ(error.kind(), error_kind::missing);
    EXPECT_TRUE(std::string(error.what()).starts_with("/nowhere/model.index.json: "));
  }
}

}  // namespace
}  // namespace samebits::tensor_file
