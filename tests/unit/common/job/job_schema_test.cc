// SPDX-License-Identifier: Apache-2.0
#include "common/job/yaml/job_schema.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/job/yaml/field_rules.h"
#include "tributary/v1/job.pb.h"

namespace tributary {
namespace {

using nlohmann::json;

json Schema() { return json::parse(JobSchema()); }

// The properties of a message's mapping form, which is the first of its forms.
json PropertiesOf(const json& schema, const std::string& message) {
  return schema["$defs"][message]["anyOf"][0]["properties"];
}

TEST(JobSchemaTest, EveryFieldWithARuleIsThere) {
  const json schema = Schema();
  for (const FieldRule& rule : AllFieldRules()) {
    const std::string name(rule.field);
    const size_t dot = name.find('.');
    const std::string message = name.substr(0, dot);
    const json properties = message == "JobSpec"
                                ? schema["properties"]
                                : PropertiesOf(schema, message);
    EXPECT_TRUE(properties.contains(name.substr(dot + 1))) << name;
  }
}

TEST(JobSchemaTest, RangesDefaultsAndNamesAreThose) {
  const json schema = Schema();
  const json linear = PropertiesOf(schema, "LinearSpec");
  EXPECT_EQ(linear["in"]["type"], "integer");
  EXPECT_EQ(linear["in"]["minimum"], 1);
  EXPECT_EQ(PropertiesOf(schema, "AdamSpec")["beta1"]["exclusiveMaximum"], 1);
  EXPECT_EQ(PropertiesOf(schema, "AdamSpec")["beta1"]["default"], "0.9");
  EXPECT_EQ(schema["properties"]["device"]["enum"],
            json({"auto", "cpu", "cuda"}));
}

TEST(JobSchemaTest, ShortFormsAreValid) {
  const json schema = Schema();
  const json& forms = schema["$defs"]["LayerSpec"]["anyOf"];
  bool word = false;
  for (const json& form : forms) {
    if (!form.contains("enum")) continue;
    for (const json& name : form["enum"]) word = word || name == "relu";
  }
  EXPECT_TRUE(word) << "- relu";
  EXPECT_EQ(PropertiesOf(schema, "ModelSpec")["sequential"]["anyOf"][1]["type"],
            "array");
  EXPECT_EQ(schema["additionalProperties"], false);
}

}  // namespace
}  // namespace tributary
