// SPDX-License-Identifier: Apache-2.0
#include "common/plan/plan_codec.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/wire/wire_format.h"

namespace tributary {

void ToProto(const ParameterSpecs& specs,
             google::protobuf::RepeatedPtrField<v1::ParameterSpec>* out) {
  out->Clear();
  for (const ParameterSpec& spec : specs) {
    v1::ParameterSpec* proto = out->Add();
    proto->set_name(spec.name);
    for (int64_t extent : spec.shape) proto->add_shape(extent);
    proto->set_stage(spec.holders.stage + 1);
    proto->set_tensor(spec.holders.tensor + 1);
    proto->set_other_stage(spec.holders.other_stage + 1);
    proto->set_running_momentum(spec.running_momentum);
    if (spec.whole_name.empty()) continue;
    v1::ParameterPart* part = proto->mutable_part();
    part->set_name(spec.whole_name);
    for (int64_t extent : spec.whole_shape) part->add_shape(extent);
    part->set_dim(spec.slice.dim);
    part->set_begin(spec.slice.begin);
    part->set_end(spec.slice.end);
    part->set_groups(spec.slice.groups);
  }
}

namespace {

// On the wire a holder counts from 1, and 0 is everybody. A negative number is
// nobody, which MakePartitionPlan refuses.
int HolderOf(int32_t number) { return number < 0 ? -2 : number - 1; }

}  // namespace

ParameterSpecs FromProto(
    const google::protobuf::RepeatedPtrField<v1::ParameterSpec>& specs) {
  ParameterSpecs out;
  for (const v1::ParameterSpec& proto : specs) {
    ParameterSpec& spec = out.emplace_back(ParameterSpec{
        .name = proto.name(),
        .shape = {proto.shape().begin(), proto.shape().end()},
        .holders = {HolderOf(proto.stage()), HolderOf(proto.tensor()),
                    HolderOf(proto.other_stage())},
        .running_momentum = proto.running_momentum()});
    if (!proto.has_part()) continue;
    const v1::ParameterPart& part = proto.part();
    spec.whole_name = part.name();
    spec.whole_shape = {part.shape().begin(), part.shape().end()};
    spec.slice = {part.dim(), part.begin(), part.end(), part.groups()};
  }
  return out;
}

DeviceMesh MeshOf(const v1::Plan& plan) {
  if (!plan.has_mesh()) return {.data = plan.num_workers()};
  return {plan.mesh().data(), plan.mesh().stages(), plan.mesh().tensor()};
}

namespace {

absl::Status CheckMesh(const v1::Plan& plan, const ParameterSpecs& specs) {
  const v1::Mesh& given = plan.mesh();
  if (plan.has_mesh() &&
      (given.data() < 1 || given.stages() < 1 || given.tensor() < 1 ||
       int64_t{given.data()} * given.stages() > plan.num_workers() ||
       int64_t{given.data()} * given.stages() * given.tensor() !=
           plan.num_workers())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a mesh of ", given.data(), " x ", given.stages(), " x ",
        given.tensor(), " is not of ", plan.num_workers(), " workers"));
  }
  const DeviceMesh mesh = MeshOf(plan);
  for (const ParameterSpec& spec : specs) {
    const Holders& holders = spec.holders;
    if (holders.stage >= -1 && holders.stage < mesh.stages &&
        holders.tensor >= -1 && holders.tensor < mesh.tensor &&
        holders.other_stage >= -1 && holders.other_stage < mesh.stages) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("parameter ", spec.name, " is held by stage ",
                     holders.stage, " and tensor rank ", holders.tensor,
                     " of a mesh of ", mesh.stages, " x ", mesh.tensor));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PartitionPlan> MakePartitionPlan(const v1::Plan& plan) {
  ParameterSpecs specs = FromProto(plan.parameters());
  TRIBUTARY_RETURN_IF_ERROR(CheckMesh(plan, specs));
  if (plan.wire() == v1::WIRE_FORMAT_TOP_K &&
      !(plan.top_k_fraction() > 0 && plan.top_k_fraction() <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_k_fraction must be above 0 and at most 1, got ",
                     plan.top_k_fraction()));
  }
  if (plan.incarnations_size() > 0 &&
      plan.incarnations_size() != plan.num_workers()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a plan of ", plan.num_workers(), " workers has ",
                     plan.incarnations_size(), " incarnations"));
  }
  const Encoding* const gradients =
      EncodingOf(plan.wire(), plan.top_k_fraction());
  const Encoding* const weights = EncodingOf(plan.weights_wire());
  if (gradients == nullptr || weights == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wire format ", gradients ? plan.weights_wire() : plan.wire(),
        " is unknown"));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(
      PartitionPlan partition,
      PartitionPlan::Create(std::move(specs), std::max(1, plan.servers_size()),
                            plan.bucket_bytes()));
  partition.SetEncodings(*gradients, *weights);
  return partition;
}

}  // namespace tributary
