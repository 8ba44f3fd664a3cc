// SPDX-License-Identifier: Apache-2.0
#include "coordinator/page/status_page.h"

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/files/sha256.h"
#include "coordinator/page/page_assets.h"
#include "coordinator/page/status_json.h"

namespace tributary {
namespace {

// The source of an inline style or script as a policy names it (W3C, Content
// Security Policy Level 3, 2.3.1): 'sha256-BASE64'.
std::string HashSource(const std::string& text) {
  Sha256 sha256;
  sha256.Update(text.data(), text.size());
  return absl::StrCat(
      "'sha256-",
      absl::Base64Escape(absl::HexStringToBytes(sha256.HexDigest())), "'");
}

HttpAnswer JsonAnswer(std::string json) {
  return {.content_type = "application/json",
          .body = std::move(json),
          .headers = {{"Cache-Control", "no-store"},
                      {"X-Content-Type-Options", "nosniff"}}};
}

}  // namespace

absl::string_view PageStyle() { return kBaseCss; }

HttpAnswer StatusPage() {
  const std::string style = absl::StrCat(kBaseCss, kStatusCss);
  const std::string script = absl::StrCat(kChartsJs, kTablesJs, kStatusJs);
  return {
      .content_type = "text/html; charset=utf-8",
      .body = absl::StrReplaceAll(
          kStatusHtml, {{"{{style}}", style}, {"{{script}}", script}}),
      .headers = {
          {"Content-Security-Policy",
           absl::StrCat("default-src 'none'; script-src ", HashSource(script),
                        "; style-src ", HashSource(style),
                        "; connect-src 'self'; img-src data:; base-uri 'none'; "
                        "form-action 'none'; frame-ancestors 'none'")},
          {"Cache-Control", "no-cache"},
          {"Referrer-Policy", "no-referrer"},
          {"X-Content-Type-Options", "nosniff"}}};
}

HttpAnswer StatusAnswer(v1::JobStatusResponse status) {
  status.clear_events();
  return JsonAnswer(StatusJson(status, /*one_line=*/true));
}

HttpAnswer HistoryAnswer(const RunHistory& history,
                         const v1::JobStatusResponse& status) {
  return JsonAnswer(history.ToJson(status.events()));
}

}  // namespace tributary
