// SPDX-License-Identifier: Apache-2.0
// Computes the logits of a run's final weights on the test set with Tributary's
// own model, so that other programs can compare theirs (bench/read_weights.py).
//   run_logits RUN_DIRECTORY LOGITS.npy
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/safetensors.h"
#include "common/job/job_file.h"
#include "common/status/status_macros.h"
#include "kernels/ops.h"
#include "tests/testing/npy.h"
#include "worker/train/data/open_data.h"
#include "worker/train/model/model.h"

namespace tributary {
namespace {

absl::Status WriteLogits(const std::string& run, const std::string& path) {
  TRIBUTARY_ASSIGN_OR_RETURN(const v1::JobSpec job,
                             ReadJobFile(absl::StrCat(run, "/job.yaml")));
  TRIBUTARY_ASSIGN_OR_RETURN(const TrainTest data,
                             OpenData(job.data(), TargetKind::kClass));
  const auto ops = CreateCpuOps();
  constexpr int64_t kRows = 256;
  TRIBUTARY_ASSIGN_OR_RETURN(
      const std::unique_ptr<Model> model,
      Model::Create(job.model(), data.test->feature_shape(),
                    {.ops = ops.get(), .max_rows = kRows, .seed = 1}));
  TRIBUTARY_ASSIGN_OR_RETURN(
      const auto weights,
      ReadSafetensors(absl::StrCat(run, "/weights.safetensors"),
                      model->parameters()));
  for (size_t p = 0; p < weights.size(); ++p) {
    ops->CopyIn(model->weight(static_cast<int>(p)), weights[p].data(),
                weights[p].size() * sizeof(float));
  }
  std::vector<float> all;
  Batch batch;
  for (int64_t first = 0; first < data.test->rows(); first += kRows) {
    std::vector<int64_t> rows;
    for (int64_t r = first; r < std::min(first + kRows, data.test->rows());
         ++r) {
      rows.push_back(r);
    }
    data.test->Gather(rows, &batch);
    const float* logits =
        model->Forward(batch.features.data(), batch.rows, ForwardContext());
    const size_t at = all.size();
    all.resize(at + batch.rows * model->output_size());
    ops->CopyOut(all.data() + at, logits, (all.size() - at) * sizeof(float));
  }
  testing::WriteNpy(path, {data.test->rows(), model->output_size()}, all);
  return absl::OkStatus();
}

}  // namespace
}  // namespace tributary

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: run_logits RUN_DIRECTORY LOGITS.npy\n");
    return 2;
  }
  const absl::Status status = tributary::WriteLogits(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
