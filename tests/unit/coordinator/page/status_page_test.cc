// SPDX-License-Identifier: Apache-2.0
#include "coordinator/page/status_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/files/sha256.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Header(const HttpAnswer& answer, const std::string& name) {
  for (const auto& [key, value] : answer.headers) {
    if (key == name) return value;
  }
  return "";
}

std::string Between(const std::string& text, const std::string& from,
                    const std::string& to) {
  const size_t begin = text.find(from) + from.size();
  return text.substr(begin, text.find(to, begin) - begin);
}

std::string Base64Sha256(const std::string& text) {
  Sha256 sha256;
  sha256.Update(text.data(), text.size());
  return absl::Base64Escape(absl::HexStringToBytes(sha256.HexDigest()));
}

// A browser runs the inline script only if its hash is in the policy, so a
// marker that is left in the document, or another script, would not run.
TEST(StatusPageTest, ThePolicyAllowsExactlyItsOwnScriptAndStyle) {
  const HttpAnswer page = StatusPage();
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  const std::string policy = Header(page, "Content-Security-Policy");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(
      policy,
      HasSubstr(absl::StrCat(
          "script-src 'sha256-",
          Base64Sha256(Between(page.body, "<script>", "</script>")), "'")));
  EXPECT_THAT(
      policy,
      HasSubstr(absl::StrCat(
          "style-src 'sha256-",
          Base64Sha256(Between(page.body, "<style>", "</style>")), "'")));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
}

TEST(StatusPageTest, ThePageNeedsNothingElseAndNeverReadsTextAsMarkup) {
  const std::string page = StatusPage().body;
  for (const char* forbidden :
       {"https://", "src=", "@import", "innerHTML", "outerHTML",
        "insertAdjacentHTML", "document.write", "eval(", "{{", "style=\""}) {
    EXPECT_THAT(page, Not(HasSubstr(forbidden)));
  }
  // The name of the SVG namespace is the one address in it.
  const size_t first = page.find("http://");
  EXPECT_EQ(page.substr(first, 26), "http://www.w3.org/2000/svg");
  EXPECT_EQ(page.find("http://", first + 1), std::string::npos);
  EXPECT_LT(page.size(), 64'000u);
}

TEST(StatusPageTest, TheStyleOfAllPagesIsMarkupAnXmlParserAccepts) {
  const std::string style(PageStyle());
  EXPECT_THAT(style, Not(HasSubstr("<")));
  EXPECT_THAT(style, Not(HasSubstr("&")));
  EXPECT_THAT(StatusPage().body, HasSubstr(style));
}

TEST(StatusPageTest, TheStatusIsWithoutEventsWhichTheHistoryHas) {
  v1::JobStatusResponse status;
  status.set_name("digits");
  status.add_events()->set_text("worker 1 was lost");
  const HttpAnswer state = StatusAnswer(status);
  EXPECT_EQ(state.content_type, "application/json");
  EXPECT_EQ(Header(state, "Cache-Control"), "no-store");
  EXPECT_EQ(Header(state, "X-Content-Type-Options"), "nosniff");
  const auto json = nlohmann::json::parse(state.body);
  EXPECT_EQ(json["name"], "digits");
  EXPECT_FALSE(json.contains("events"));
  const auto past =
      nlohmann::json::parse(HistoryAnswer(RunHistory(), status).body);
  EXPECT_EQ(past["events"][0]["text"], "worker 1 was lost");
}

}  // namespace
}  // namespace tributary
