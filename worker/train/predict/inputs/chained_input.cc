// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/train/predict/inputs/input_rows.h"

namespace tributary {
namespace {

// A count of 0 means to the end.
int64_t EndOf(const RowRange& range) {
  return range.count == 0 ? std::numeric_limits<int64_t>::max()
                          : range.first + range.count;
}

class ChainedInput final : public InputRows {
 public:
  ChainedInput(const v1::Preprocessing& preprocessing, InputOptions options)
      : preprocessing_(preprocessing),
        options_(std::move(options)),
        range_(options_.range) {
    options_.range = {};
  }

  // Opens the next file; leaves current_ empty after the last one.
  absl::Status Advance();
  absl::StatusOr<RawData> Next(int64_t most) override;
  std::vector<std::string> TakeWarnings() override;

 private:
  const v1::Preprocessing& preprocessing_;
  InputOptions options_;
  RowRange range_;  // over the rows of all files
  size_t opened_ = 0;
  std::unique_ptr<InputRows> current_;
  int64_t row_ = 0;  // the next row
  std::vector<std::string> warnings_;
};

absl::Status ChainedInput::Advance() {
  if (current_ != nullptr) {
    for (std::string& warning : current_->TakeWarnings()) {
      warnings_.push_back(std::move(warning));
    }
    current_.reset();
  }
  if (opened_ > options_.more_paths.size()) return absl::OkStatus();
  InputOptions options = options_;
  options.more_paths.clear();
  if (opened_ > 0) options.path = options_.more_paths[opened_ - 1];
  ++opened_;
  TRIBUTARY_ASSIGN_OR_RETURN(current_, OpenCsvInput(preprocessing_, options));
  return absl::OkStatus();
}

absl::StatusOr<RawData> ChainedInput::Next(int64_t most) {
  while (current_ != nullptr) {
    const bool skipping = row_ < range_.first;
    const int64_t left = skipping ? range_.first - row_ : EndOf(range_) - row_;
    if (left <= 0) break;
    TRIBUTARY_ASSIGN_OR_RETURN(RawData rows,
                               current_->Next(std::min(most, left)));
    row_ += rows.rows;
    if (rows.rows == 0) {
      TRIBUTARY_RETURN_IF_ERROR(Advance());
    } else if (!skipping) {
      return rows;
    }
  }
  if (row_ <= range_.first) {
    return absl::InvalidArgumentError(
        absl::StrCat(options_.path, ": wanted the rows from row ", range_.first,
                     " on, but there are ", row_));
  }
  RawData none;
  none.name = options_.path;
  return none;
}

std::vector<std::string> ChainedInput::TakeWarnings() {
  return std::exchange(warnings_, {});
}

}  // namespace

absl::StatusOr<std::unique_ptr<InputRows>> OpenChainedInput(
    const v1::Preprocessing& preprocessing, const InputOptions& options) {
  auto input = std::make_unique<ChainedInput>(preprocessing, options);
  TRIBUTARY_RETURN_IF_ERROR(input->Advance());
  return input;
}

}  // namespace tributary
