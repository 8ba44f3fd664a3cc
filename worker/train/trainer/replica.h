// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/device_mesh.h"
#include "common/base/tensor.h"
#include "tributary/v1/job.pb.h"
#include "worker/rank/session/connect_group.h"
#include "worker/train/data/dataset.h"
#include "worker/train/model/loss.h"
#include "worker/train/model/model.h"
#include "worker/train/pipeline/pipeline_stage.h"

namespace tributary {

// A worker's part of one replica of the model (the whole, a stage, or slices of
// its parameters), connected to the workers that hold the other parts.
class Replica {
 public:
  struct Options {
    const v1::JobSpec* job = nullptr;  // resolved; all outlive the replica
    Ops* ops = nullptr;
    const Dataset* train = nullptr;
    int64_t max_rows = 0;  // per batch
    int rank = 0;          // in the job
  };

  // Creates the whole model, without groups. Errors as in Model and Loss.
  static absl::StatusOr<std::unique_ptr<Replica>> CreateWhole(
      const Options& options);
  // Creates this rank's part and connects the groups of the plan's mesh.
  static absl::StatusOr<std::unique_ptr<Replica>> Connect(
      const Options& options, const GroupParts& parts, const v1::Plan& plan);

  // OK when the model accepts these samples and has outputs for their targets.
  absl::Status CheckFits(const Dataset& data) const;

  Model* model() const { return model_.get(); }
  Loss* loss() const { return loss_.get(); }                         // or null
  PipelineStage* stage() const { return stage_.get(); }              // or null
  TensorGroup* tensor_group() const { return tensor_group_.get(); }  // or null
  // True for the one rank of the replica that reports losses and evaluations.
  bool reports() const {
    return place_.tensor == 0 && place_.stage == mesh_.stages - 1;
  }
  const DeviceMesh& mesh() const { return mesh_; }
  const DeviceMesh::Place& place() const { return place_; }
  // DataRanks: the ranks that hold the same part of all replicas, by replica.
  // ModelRanks: all ranks of this replica.
  std::vector<int> DataRanks() const;
  std::vector<int> ModelRanks() const;

  // Bytes exchanged within the replica: activations, their gradients, sums of
  // slices. Call them between steps.
  uint64_t bytes_sent() const;
  uint64_t bytes_received() const;

  // Ends every wait for other ranks. May be called from any thread.
  void Cancel(const std::string& why);

 private:
  explicit Replica(const Options& options);

  absl::Status ConnectTensor(const GroupParts& parts, const v1::Plan& plan);
  absl::Status Build(const GroupParts* parts, const v1::Plan* plan);
  absl::Status MakeLoss();
  absl::Status MakeStage(const GroupParts& parts, const v1::Plan& plan,
                         const std::vector<int>& bounds);
  int num_micro_batches() const;
  int64_t max_micro_rows() const;

  const Options options_;
  const DeviceMesh mesh_;
  const DeviceMesh::Place place_;
  std::unique_ptr<Communicator> tensor_;
  std::unique_ptr<TensorGroup> tensor_group_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Loss> loss_;
  std::unique_ptr<PipelineStage> stage_;
};

}  // namespace tributary
