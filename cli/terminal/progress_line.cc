// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/progress_line.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/terminal/format.h"

namespace tributary {
namespace {

constexpr int kWidestBar = 30;
constexpr int kNarrowestBar = 8;

int Percent(const ProgressView& view) {
  if (view.total_steps < 1) return 0;
  return static_cast<int>(100 * view.step / view.total_steps);
}

// "[====>     ]", `inner` characters between the brackets.
std::string Bar(const ProgressView& view, int inner) {
  const double share = view.total_steps < 1
                           ? 0.0
                           : static_cast<double>(view.step) /
                                 static_cast<double>(view.total_steps);
  const int full = std::clamp(static_cast<int>(share * inner), 0, inner);
  std::string bar(inner, ' ');
  std::fill_n(bar.begin(), full, '=');
  if (full < inner) bar[full] = '>';
  return absl::StrCat("[", bar, "]");
}

// The rate, in a short form for little room.
std::string ShortRate(const ProgressView& view) {
  if (view.counts_steps) return RateText(view.samples_per_second, true);
  return absl::StrCat(FormatCount(view.samples_per_second), "/s");
}

// "epoch 2/5", "epoch 2", or nothing.
std::string EpochText(const ProgressView& view) {
  if (view.epoch < 1) return "";
  const std::string all =
      view.total_steps > 0 ? absl::StrCat("/", view.epochs) : "";
  return absl::StrCat("epoch ", view.epoch, all);
}

// "  loss 0.3412", or nothing.
std::string LossPart(const ProgressView& view) {
  return view.loss ? absl::StrCat("  loss ", FormatMetric(*view.loss)) : "";
}

// The line of a job whose end is open.
std::string OpenLine(const ProgressView& view, int width) {
  const size_t room = static_cast<size_t>(std::max(width, 0));
  std::string line = EpochText(view);
  absl::StrAppend(&line, line.empty() ? "" : "  ", "step ", view.step);
  for (const std::string& part :
       {LossPart(view), absl::StrCat("  ", ShortRate(view))}) {
    if (line.size() + part.size() > room) break;
    line += part;
  }
  return line.substr(0, room);
}

}  // namespace

std::string RateText(double rate, bool counts_steps) {
  return absl::StrCat(FormatCount(rate),
                      counts_steps ? " steps/s" : " samples/s");
}

std::string BarLine(const ProgressView& view, int width) {
  if (view.total_steps < 1) return OpenLine(view, width);
  std::string epoch = EpochText(view);
  if (!epoch.empty()) epoch += " ";
  std::string steps = absl::StrFormat("%3d%% %d/%d", Percent(view), view.step,
                                      view.total_steps);
  // When there is too little room, the last part is dropped first.
  std::vector<std::string> parts = {
      LossPart(view), absl::StrCat("  ", ShortRate(view)),
      absl::StrCat("  ETA ", FormatDuration(view.eta_seconds))};
  while (true) {
    size_t text = epoch.size() + 2 + 1 + steps.size();
    for (const std::string& part : parts) text += part.size();
    const int room = width - static_cast<int>(text);
    if (room >= kNarrowestBar) {
      std::string line = absl::StrCat(
          epoch, Bar(view, std::min(room, kWidestBar)), " ", steps);
      for (const std::string& part : parts) absl::StrAppend(&line, part);
      return line;
    }
    if (parts.empty()) return steps.substr(0, std::max(width, 0));
    parts.pop_back();
  }
}

std::string PlainLine(const ProgressView& view) {
  const bool open = view.total_steps < 1;
  const std::string epoch = EpochText(view);
  std::string line = absl::StrCat("step ", view.step);
  if (!open) {
    absl::StrAppendFormat(&line, "/%d (%d%%)", view.total_steps, Percent(view));
  }
  absl::StrAppend(&line, epoch.empty() ? "" : ", ", epoch, ": ");
  if (view.loss) {
    absl::StrAppend(&line, "loss ", FormatMetric(*view.loss), ", ");
  }
  line += RateText(view.samples_per_second, view.counts_steps);
  if (open) return line;
  return absl::StrCat(line, ", ETA ", FormatDuration(view.eta_seconds));
}

std::string MetricsText(const std::map<std::string, double>& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, " ",
                    FormatMetric(value));
  }
  return text;
}

std::string EvaluationLine(const ProgressView& view, absl::string_view set,
                           const std::map<std::string, double>& metrics) {
  const std::string epoch = EpochText(view);
  return absl::StrCat(epoch.empty() ? absl::StrCat("step ", view.step) : epoch,
                      ": ", set, " ", MetricsText(metrics));
}

}  // namespace tributary
