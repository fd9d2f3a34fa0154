// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace diwarp::tools {

/// What the system's loader says of a program, without running it.
struct Loading {
  bool dynamic = true;  ///< false: it is linked statically, or no program
  std::string verbs;    ///< the file that libibverbs.so.1 would be; empty: it is not asked for
  std::string cm;       ///< the same of librdmacm.so.1
  std::vector<std::string> missing;  ///< libraries, versions and symbols that are not there
};

/// Reads what `ldd -r` prints.
Loading parse_loading(const std::string& output);

/// Asks the loader, with `folder` before the other places of libraries. Throws Failure where it
/// gives no answer.
Loading ask_loader(const std::string& file, const std::string& folder);

}  // namespace diwarp::tools
