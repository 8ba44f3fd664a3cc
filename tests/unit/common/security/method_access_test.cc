// SPDX-License-Identifier: Apache-2.0
#include "common/security/method_access.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tributary/v1/coordinator_service.pb.h"
#include "tributary/v1/parameter_service.pb.h"

namespace tributary {
namespace {

// The methods of Tributary's services, from their descriptors.
std::set<std::string> DeclaredMethods() {
  std::set<std::string> methods;
  for (const auto* file : {v1::RegisterRequest::descriptor()->file(),
                           v1::PullRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      const auto* service = file->service(s);
      for (int m = 0; m < service->method_count(); ++m) {
        methods.insert(absl::StrCat("/", service->full_name(), "/",
                                    service->method(m)->name()));
      }
    }
  }
  return methods;
}

TEST(MethodAccessTest, EveryMethodIsInTheTableOnce) {
  std::set<std::string> listed;
  for (const MethodAccess& access : AllMethodAccess()) {
    EXPECT_TRUE(listed.insert(access.method).second) << access.method;
    EXPECT_FALSE(access.roles.empty()) << access.method;
  }
  const std::set<std::string> declared = DeclaredMethods();
  EXPECT_EQ(declared.size(), 18u);
  for (const std::string& method : declared) {
    EXPECT_TRUE(listed.count(method)) << method << " may be called by nobody";
  }
  for (const std::string& method : listed) {
    EXPECT_TRUE(declared.count(method) || absl::StartsWith(method, "/grpc."))
        << method << " does not exist";
  }
}

TEST(MethodAccessTest, AnUnknownMethodIsNobodys) {
  EXPECT_EQ(AccessTo("/tributary.v1.ParameterService/Nothing"), nullptr);
  EXPECT_EQ(AccessTo(""), nullptr);
}

// Calls that change a job, or show its weights, want a ticket or an operator.
TEST(MethodAccessTest, AMonitorSeesHealthAndStatusAlone) {
  std::set<std::string> seen;
  for (const MethodAccess& access : AllMethodAccess()) {
    if (access.MayCall(PeerRole::kMonitor)) seen.insert(access.method);
  }
  EXPECT_EQ(seen,
            (std::set<std::string>{
                "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
                "/tributary.v1.CoordinatorService/GetJobStatus",
                "/tributary.v1.ParameterService/GetServerStatus"}));
}

}  // namespace
}  // namespace tributary
