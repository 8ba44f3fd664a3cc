// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/environment_record.h"

#include <google/protobuf/stubs/common.h>
#include <grpcpp/grpcpp.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/version.h"

namespace tributary {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormatVersion = 1;

Json RanksJson(const EnvironmentRecord& record) {
  Json ranks = Json::array();
  for (size_t rank = 0; rank < record.workers.size(); ++rank) {
    const v1::RegisterRequest& worker = record.workers[rank];
    ranks.push_back({{"rank", rank},
                     {"host", worker.host()},
                     {"arithmetic", worker.arithmetic()}});
  }
  return ranks;
}

Json DataJson(const EnvironmentRecord& record) {
  Json data = Json::parse(record.data, nullptr, /*allow_exceptions=*/false);
  if (!data.is_object()) data = Json::object();
  if (record.training_rows > 0 && record.training_checksum > 0) {
    data["train"] = {
        {"rows", record.training_rows},
        {"checksum",
         absl::StrCat(absl::Hex(record.training_checksum, absl::kZeroPad8))}};
  }
  return data;
}

}  // namespace

std::map<std::string, std::string> ProgramVersions() {
  return {{"tributary", kVersion},
          {"grpc", grpc::Version()},
          {"protobuf",
           google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION)},
          {"compiler", __VERSION__}};
}

std::string EnvironmentJson(const EnvironmentRecord& record) {
  Json json;
  json["format_version"] = kFormatVersion;
  json["versions"] = ProgramVersions();
  json["versions"]["c_library"] = record.machine.c_library;
  json["machine"] = {{"host", record.machine.host},
                     {"processor", record.machine.processor},
                     {"processors", record.machine.processors},
                     {"instruction_sets", record.machine.instruction_sets}};
  json["ranks"] = RanksJson(record);
  json["data"] = DataJson(record);
  json["start"] = {{"step", record.start.step},
                   {"checkpoint", record.start.restore_from}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tributary
