// SPDX-License-Identifier: Apache-2.0
// The services that gRPC defines, at a parameter server, as clients of any
// language see them.
#include "common/wire/side/side_calls.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/service/parameter_server.h"
#include "tests/testing/ready_channel.h"
#include "tests/testing/status_matchers.h"
#include "tributary/v1/grpc_services.pb.h"

namespace tributary {
namespace {

using ::testing::Contains;
using Health = v1::HealthCheckResponse;
using grpc::internal::RpcMethod;

constexpr char kService[] = "tributary.v1.ParameterService";

class SideCallsTest : public ::testing::Test {
 protected:
  SideCallsTest() {
    auto server = ParameterServer::Start({.reflection = true});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ =
        testing::ReadyChannel(absl::StrCat("127.0.0.1:", server_->port()));
  }

  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
  }

  template <typename Request, typename Response>
  grpc::Status Call(const char* method, const Request& request,
                    Response* response) {
    grpc::ClientContext context;
    SetDeadline(context);
    return grpc::internal::BlockingUnaryCall(
        channel_.get(), RpcMethod(method, RpcMethod::NORMAL_RPC), &context,
        request, response);
  }

  grpc::Status Check(const std::string& service, Health* health) {
    v1::HealthCheckRequest request;
    request.set_service(service);
    return Call("/grpc.health.v1.Health/Check", request, health);
  }

  std::unique_ptr<grpc::ClientReader<Health>> Watch(
      grpc::ClientContext* context, const std::string& service) {
    SetDeadline(*context);
    v1::HealthCheckRequest request;
    request.set_service(service);
    const RpcMethod method("/grpc.health.v1.Health/Watch",
                           RpcMethod::SERVER_STREAMING);
    return std::unique_ptr<grpc::ClientReader<Health>>(
        grpc::internal::ClientReaderFactory<Health>::Create(
            channel_.get(), method, context, request));
  }

  using Reflection =
      grpc::ClientReaderWriter<v1::ReflectionRequest, v1::ReflectionResponse>;
  std::unique_ptr<Reflection> Reflect(grpc::ClientContext* context,
                                      const char* method) {
    SetDeadline(*context);
    return std::unique_ptr<Reflection>(
        grpc::internal::ClientReaderWriterFactory<v1::ReflectionRequest,
                                                  v1::ReflectionResponse>::
            Create(channel_.get(), RpcMethod(method, RpcMethod::BIDI_STREAMING),
                   context));
  }

  std::unique_ptr<ParameterServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(SideCallsTest, AServerThatListensServesAlsoBeforeItHasAPlan) {
  for (const char* service : {"", kService}) {
    Health health;
    ASSERT_TRUE(Check(service, &health).ok()) << service;
    EXPECT_EQ(health.status(), Health::SERVING);
  }
}

TEST_F(SideCallsTest, AnUnknownServiceIsNotFoundAndWatchedAsUnknown) {
  Health health;
  EXPECT_EQ(Check("no.such.Service", &health).error_code(),
            grpc::StatusCode::NOT_FOUND);
  grpc::ClientContext context;
  const auto watch = Watch(&context, "no.such.Service");
  ASSERT_TRUE(watch->Read(&health));
  EXPECT_EQ(health.status(), Health::SERVICE_UNKNOWN);
}

TEST_F(SideCallsTest, AWatchHearsThatTheServerGoesHome) {
  grpc::ClientContext context;
  const auto watch = Watch(&context, kService);
  Health health;
  ASSERT_TRUE(watch->Read(&health));
  EXPECT_EQ(health.status(), Health::SERVING);
  server_->Shutdown();
  ASSERT_TRUE(watch->Read(&health));
  EXPECT_EQ(health.status(), Health::NOT_SERVING);
  EXPECT_FALSE(watch->Read(&health));
}

// gRPC's own client-side health checking is the other party here.
TEST_F(SideCallsTest, AChannelThatChecksHealthByItselfConnects) {
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(
      R"({"loadBalancingConfig": [{"round_robin": {}}],
          "healthCheckConfig": {"serviceName": "tributary.v1.ParameterService"}})");
  const auto channel =
      grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                grpc::InsecureChannelCredentials(), arguments);
  EXPECT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() +
                                        std::chrono::seconds(20)));
}

TEST_F(SideCallsTest, WatchesThatAreCancelledMakeRoomForOthers) {
  for (int i = 0; i < 3 * SideCalls::kMaxCalls; ++i) {
    grpc::ClientContext context;
    const auto watch = Watch(&context, "");
    Health health;
    ASSERT_TRUE(watch->Read(&health)) << i;
    context.TryCancel();
    EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

TEST_F(SideCallsTest, MoreWatchesThanTheLimitAreRefusedAndTheServerGoesOn) {
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<Health>>> watches;
  int refused = 0;
  for (int i = 0; i < SideCalls::kMaxCalls + 3; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    watches.push_back(Watch(contexts.back().get(), ""));
    Health health;
    if (watches.back()->Read(&health)) continue;
    ++refused;
    EXPECT_EQ(watches.back()->Finish().error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  EXPECT_EQ(refused, 3);
  for (const auto& context : contexts) context->TryCancel();
}

TEST_F(SideCallsTest, OtherMethodsAndWrongBytesGetAStatus) {
  Health health;
  EXPECT_EQ(Call("/no.such.Service/Method", v1::HealthCheckRequest(), &health)
                .error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  v1::FileDescriptors wrong;  // bytes that are not UTF-8 as a service's name
  wrong.add_file_descriptor_proto("\xff");
  EXPECT_EQ(Call("/grpc.health.v1.Health/Check", wrong, &health).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  v1::HealthCheckRequest large;
  large.set_service(std::string(5000, 'x'));
  EXPECT_EQ(Call("/grpc.health.v1.Health/Check", large, &health).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(SideCallsTest, ReflectionNamesTheServicesAndSendsTheirFiles) {
  for (const char* method :
       {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    grpc::ClientContext context;
    const auto stream = Reflect(&context, method);
    v1::ReflectionRequest request;
    request.set_list_services("*");
    v1::ReflectionResponse response;
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&response));
    std::vector<std::string> names;
    for (const auto& s : response.list_services_response().service()) {
      names.push_back(s.name());
    }
    EXPECT_THAT(names, Contains(kService));
    EXPECT_THAT(names, Contains("grpc.health.v1.Health"));

    request.set_file_containing_symbol(absl::StrCat(kService, ".PushPull"));
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&response));
    ASSERT_EQ(response.file_descriptor_response().file_descriptor_proto_size(),
              1);
    google::protobuf::FileDescriptorProto file;
    ASSERT_TRUE(file.ParseFromString(
        response.file_descriptor_response().file_descriptor_proto(0)));
    EXPECT_EQ(file.name(), "tributary/v1/parameter_service.proto");

    request.set_file_containing_symbol("no.such.Symbol");
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.error_response().error_code(),
              grpc::StatusCode::NOT_FOUND);
    EXPECT_TRUE(stream->WritesDone());
    EXPECT_TRUE(stream->Finish().ok());
  }
}

}  // namespace
}  // namespace tributary
