// SPDX-License-Identifier: Apache-2.0
#include "common/wire/side/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/grpcpp.h>

#include <set>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

// Adds the file and everything that it imports, each file once.
void AddFiles(const FileDescriptor* file, std::set<std::string>* seen,
              v1::FileDescriptors* files) {
  if (!seen->insert(file->name()).second) return;
  google::protobuf::FileDescriptorProto proto;
  file->CopyTo(&proto);
  files->add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file->dependency_count(); ++i) {
    AddFiles(file->dependency(i), seen, files);
  }
}

void SetError(grpc::StatusCode code, const std::string& message,
              v1::ReflectionResponse* response) {
  v1::ReflectionError* error = response->mutable_error_response();
  error->set_error_code(code);
  error->set_error_message(message);
}

void SetFile(const FileDescriptor* file, const std::string& wanted,
             v1::ReflectionResponse* response) {
  if (file == nullptr) {
    return SetError(grpc::StatusCode::NOT_FOUND,
                    absl::StrCat("there is no ", wanted), response);
  }
  std::set<std::string> seen;
  AddFiles(file, &seen, response->mutable_file_descriptor_response());
}

}  // namespace

v1::ReflectionResponse AnswerReflection(
    const v1::ReflectionRequest& request,
    const std::vector<std::string>& services) {
  v1::ReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  using Request = v1::ReflectionRequest;
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      SetFile(pool.FindFileByName(request.file_by_filename()),
              absl::StrCat("file ", request.file_by_filename()), &response);
      break;
    case Request::kFileContainingSymbol:
      SetFile(pool.FindFileContainingSymbol(request.file_containing_symbol()),
              absl::StrCat("symbol ", request.file_containing_symbol()),
              &response);
      break;
    case Request::kListServices:
      response.mutable_list_services_response();
      for (const std::string& name : services) {
        response.mutable_list_services_response()->add_service()->set_name(
            name);
      }
      break;
    case Request::kFileContainingExtension:
    case Request::kAllExtensionNumbersOfType:
      SetError(grpc::StatusCode::NOT_FOUND, "there are no extensions",
               &response);
      break;
    case Request::MESSAGE_REQUEST_NOT_SET:
      SetError(grpc::StatusCode::INVALID_ARGUMENT,
               "a file, a symbol or the list of services is wanted", &response);
      break;
  }
  return response;
}

}  // namespace tributary
