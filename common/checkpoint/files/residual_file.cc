// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/files/residual_file.h"

#include "absl/strings/str_cat.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/named_file.h"
#include "common/plan/plan_codec.h"
#include "common/status/quoted.h"
#include "common/status/status_macros.h"

namespace tributary {

ShardFileSeries ResidualSeriesOf(const v1::Plan& plan, int rank) {
  return {.kind = PagedFileKind::kResidual,
          .job_id = plan.job_id(),
          .lineage = plan.lineage(),
          .plan_epoch = plan.epoch(),
          .shard = rank,
          .num_shards = plan.num_workers(),
          .parameters = FromProto(plan.parameters()),
          .state_names = {}};
}

std::string WhyNoResiduals(const v1::CheckpointManifest& manifest,
                           const v1::Plan& plan) {
  if (manifest.residuals().empty()) return "the checkpoint has none";
  if (manifest.residuals_size() != plan.num_workers()) {
    return absl::StrCat("the checkpoint has those of ",
                        manifest.residuals_size(), " ranks, the job has ",
                        plan.num_workers());
  }
  if (FromProto(manifest.parameters()) != FromProto(plan.parameters())) {
    return "the checkpoint has those of another mesh of ranks";
  }
  return "";
}

absl::StatusOr<std::unique_ptr<const ResidualFile>> ResidualFile::Open(
    const std::string& folder, const v1::CheckpointManifest& manifest,
    int rank) {
  TRIBUTARY_ASSIGN_OR_RETURN(
      std::unique_ptr<ShardFile> file,
      OpenNamed(folder, manifest, PagedFileKind::kResidual, rank,
                /*compares=*/true));
  std::unique_ptr<ResidualFile> opened(
      new ResidualFile(std::move(file), SumsOf(manifest.residuals(rank))));
  TRIBUTARY_RETURN_IF_ERROR(opened->FindParameters());
  return opened;
}

absl::Status ResidualFile::FindParameters() {
  const ParameterSpecs& parameters = file_->header().parameters;
  ranges_.resize(parameters.size());
  for (const ShardFile::Range& range : file_->ranges()) {
    const ParameterSpec& spec = parameters[range.parameter];
    if (range.begin != 0 || range.end != spec.size()) {
      return file_->file().MessageError(
          absl::StrCat("wants the whole parameter ", Quoted(spec.name),
                       ", got elements ", range.begin, " to ", range.end));
    }
    if (ranges_[range.parameter] != nullptr) {
      return file_->file().MessageError(
          absl::StrCat("parameter ", Quoted(spec.name), " stands in it twice"));
    }
    ranges_[range.parameter] = &range;
  }
  return absl::OkStatus();
}

absl::Status ResidualFile::Read(absl::Span<float* const> residuals) const {
  const ParameterSpecs& parameters = file_->header().parameters;
  if (residuals.size() != parameters.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_->file().path(), ": holds a residual of ", parameters.size(),
        " parameters, wanted one of ", residuals.size()));
  }
  PageBuffer buffer;
  for (size_t p = 0; p < residuals.size(); ++p) {
    const ShardFile::Range* const range = ranges_[p];
    if ((range == nullptr) != (residuals[p] == nullptr)) {
      return file_->file().MessageError(absl::StrCat(
          range == nullptr ? "lacks" : "holds", " parameter ",
          Quoted(parameters[p].name), ", of which the rank pushes ",
          range == nullptr ? "the gradient" : "no gradient"));
    }
    if (range == nullptr) continue;
    TRIBUTARY_RETURN_IF_ERROR(file_->Read(
        *range, /*tensor=*/0, /*first=*/0,
        absl::MakeSpan(residuals[p], static_cast<size_t>(range->end)),
        &buffer));
  }
  return file_->file().Compare(sums_);
}

}  // namespace tributary
