#include "common/wire/plan_codec.h"

#include <algorithm>

namespace tributary {

void ToProto(const ParameterSpecs& specs,
             google::protobuf::RepeatedPtrField<v1::ParameterSpec>* out) {
  out->Clear();
  for (const ParameterSpec& spec : specs) {
    v1::ParameterSpec* proto = out->Add();
    proto->set_name(spec.name);
    for (int64_t extent : spec.shape) proto->add_shape(extent);
  }
}

ParameterSpecs FromProto(
    const google::protobuf::RepeatedPtrField<v1::ParameterSpec>& specs) {
  ParameterSpecs out;
  for (const v1::ParameterSpec& proto : specs) {
    out.push_back({proto.name(), {proto.shape().begin(), proto.shape().end()}});
  }
  return out;
}

absl::StatusOr<PartitionPlan> MakePartitionPlan(const v1::Plan& plan) {
  return PartitionPlan::Create(FromProto(plan.parameters()),
                               std::max(1, plan.servers_size()),
                               plan.bucket_bytes());
}

}  // namespace tributary
