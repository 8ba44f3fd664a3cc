// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"

namespace tributary {

// The files of coordinator/page/assets, which the build compiles into the
// program (page_assets.cc.in).
extern const absl::string_view kBaseCss;
extern const absl::string_view kStatusCss;
extern const absl::string_view kStatusHtml;
extern const absl::string_view kChartsJs;
extern const absl::string_view kTablesJs;
extern const absl::string_view kStatusJs;

}  // namespace tributary
