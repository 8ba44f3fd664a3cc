// SPDX-License-Identifier: Apache-2.0
#include "common/model_record/run_weights.h"

#include <filesystem>
#include <system_error>

namespace tributary {

std::string WeightsOfRun(const std::string& run) {
  for (const char* file : {kBestWeightsFile, kLastWeightsFile}) {
    std::error_code error;
    if (std::filesystem::exists(run + file, error)) return run + file;
  }
  return "";
}

}  // namespace tributary
