// SPDX-License-Identifier: Apache-2.0
// A program of another project that uses the installed client.
#include <cstdio>
#include <vector>

#include "worker/rank/client/parameter_client.h"

int main() {
  tributary::ParameterClient::Options options;
  tributary::v1::ParameterSpec* weight = options.plan.add_parameters();
  weight->set_name("0.weight");
  weight->add_shape(64);
  options.plan.add_servers("127.0.0.1:1");  // has no listener
  options.plan.set_bucket_bytes(1 << 20);
  options.plan.set_num_workers(1);
  options.step_timeout = absl::Milliseconds(100);

  auto client = tributary::ParameterClient::Connect(std::move(options));
  if (!client.ok()) return 1;
  std::vector<float> weights(64);
  const absl::Status status = (*client)->Pull({}, {weights.data()});
  std::printf("%s\n", status.ToString().c_str());
  return status.ok() ? 1 : 0;
}
