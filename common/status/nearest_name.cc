// SPDX-License-Identifier: Apache-2.0
#include "common/status/nearest_name.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tributary {
namespace {

// Longer than any name of the schema. Bounds the cost for any input.
constexpr size_t kMaxCompared = 64;

// Names in other programs and papers, each with the one that is known here.
constexpr std::pair<absl::string_view, absl::string_view> kOtherNames[] = {
    {"swish", "silu"},
    {"lr", "learning_rate"},
    {"wd", "weight_decay"},
    {"ddp", "all_reduce"},
    {"allreduce", "all_reduce"},
    {"zero", "all_reduce"},
    {"fsdp", "all_reduce"},
    {"ps", "parameter_server"},
    {"gpu", "cuda"},
    {"bf16", "bfloat16"},
    {"fp16", "float16"},
    {"half", "float16"},
    {"fp32", "float32"},
    {"dense", "linear"},
    {"fc", "linear"},
    {"conv", "conv2d"},
    {"maxpool2d", "max_pool"},
    {"avgpool2d", "avg_pool"},
    {"adaptiveavgpool2d", "global_avg_pool"},
    {"batchnorm2d", "batch_norm"},
    {"batchnorm1d", "batch_norm"},
    {"multiheadattention", "attention"},
    {"crossentropyloss", "cross_entropy"},
    {"nll", "cross_entropy"},
    {"bceloss", "bce_with_logits"},
    {"l2", "mse"},
    {"mseloss", "mse"},
    {"grad_accumulation", "gradient_accumulation"},
    {"max_grad_norm", "clip_norm"},
    {"num_epochs", "epochs"},
    {"max_steps", "steps"},
    {"num_workers", "workers"},
    {"world_size", "workers"},
};

// Removes what CamelCase and snake_case write differently.
std::string Letters(absl::string_view name) {
  std::string letters;
  for (char c : name) {
    if (c != '_' && c != '-') letters += absl::ascii_tolower(c);
  }
  return letters;
}

// The name that differs from `written` only in capitals, underscores and
// hyphens, or that other programs call `written`. Empty: there is none.
std::string SameName(absl::string_view written,
                     const std::vector<std::string>& names) {
  const std::string letters = Letters(written);
  for (const std::string& name : names) {
    if (Letters(name) == letters) return name;
  }
  for (const auto& [other, ours] : kOtherNames) {
    if (Letters(other) != letters) continue;
    if (const auto at = std::find(names.begin(), names.end(), ours);
        at != names.end()) {
      return *at;
    }
  }
  return "";
}

}  // namespace

int EditDistance(absl::string_view a, absl::string_view b) {
  // Keeps three rows of the table: row i needs row i - 1 and, for swaps, i - 2.
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string NearestName(absl::string_view written,
                        const std::vector<std::string>& names) {
  if (written.size() > kMaxCompared) return "";
  if (std::string same = SameName(written, names); !same.empty()) return same;
  const int limit = std::max<int>(1, static_cast<int>(written.size()) / 3);
  std::string nearest;
  int best = limit + 1;
  for (const std::string& name : names) {
    const int distance = EditDistance(written, name);
    if (distance < best) {
      best = distance;
      nearest = name;
    }
  }
  return nearest;
}

std::string NameHint(absl::string_view written,
                     const std::vector<std::string>& names,
                     absl::string_view owner) {
  const std::string nearest = NearestName(written, names);
  if (!nearest.empty()) {
    return absl::StrCat("; did you mean \"", nearest, "\"?");
  }
  if (names.empty()) return absl::StrCat("; ", owner, " takes no fields");
  return absl::StrCat("; ", owner, " knows ", absl::StrJoin(names, ", "));
}

}  // namespace tributary
