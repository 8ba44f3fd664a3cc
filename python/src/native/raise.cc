// SPDX-License-Identifier: Apache-2.0
#include "python/src/native/raise.h"

#include <nanobind/nanobind.h>

#include <string>

namespace nb = nanobind;

namespace tributary {

void Raise(const absl::Status& status, absl::string_view during) {
  const std::string code = absl::StatusCodeToString(status.code());
  const std::string message(status.message());
  const std::string method(during);
  const nb::object error =
      nb::module_::import_("tributary._errors")
          .attr("from_status")(code.c_str(), message.c_str(), method.c_str());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())),
                  error.ptr());
  throw nb::python_error();
}

}  // namespace tributary
