// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "bridge/fake.h"

/// The libraries of rdma-core's that are loaded. They are so once in a process: each case has one
/// of its own.
namespace diwarp::bridge_test {

namespace {

using Catch::Matchers::ContainsSubstring;

const std::string kFake = FAKE_RDMA_CORE_FOLDER;
const std::string kStubs = STUB_LIBRARIES_FOLDER;
constexpr const char* kVerbs = "libibverbs.so.1";
constexpr const char* kCm = "librdmacm.so.1";

/// A folder of the case's own.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "diwarp-bridge-XXXXXX") {
    std::string name = path_;
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path() const { return path_; }
  std::string file(const char* name) const { return path_ / name; }
  void link(const std::string& library, const char* name) const {
    std::filesystem::create_symlink(library, path_ / name);
  }

 private:
  std::filesystem::path path_;
};

/// What the probe says in this environment ("NAME=VALUE").
std::string probe(const std::string& environment, const std::string& arguments = "") {
  const std::string command =
      "env -u DIWARP_RDMA_CORE " + environment + " " + LIBRARIES_PROBE + " " + arguments + " 2>&1";
  std::FILE* const output = ::popen(command.c_str(), "r");
  REQUIRE(output != nullptr);
  std::string text;
  std::array<char, 4096> part;
  for (size_t count = 0; (count = std::fread(part.data(), 1, part.size(), output)) != 0;)
    text.append(part.data(), count);
  CHECK(::pclose(output) == 0);
  return text;
}

std::string probe_folder(const std::string& folder, const std::string& arguments = "") {
  return probe("DIWARP_RDMA_CORE=" + folder, arguments);
}

/// The libraries are refused with this part of a sentence, and software works.
void check_refused(const std::string& said, const std::string& part) {
  CHECK_THAT(said, ContainsSubstring("refusal: ") && ContainsSubstring(part));
  CHECK_THAT(said, ContainsSubstring("verbs: \n") && ContainsSubstring("not opened: "));
  CHECK_THAT(said, ContainsSubstring("software works"));
}

}  // namespace

TEST_CASE("The libraries are those of the folder that DIWARP_RDMA_CORE names") {
  const std::string said = probe_folder(kFake);
  CHECK_THAT(said, ContainsSubstring("verbs: " + kFake + "/" + kVerbs + "\n"));
  CHECK_THAT(said, ContainsSubstring("cm: " + kFake + "/" + kCm + "\n"));
  CHECK_THAT(said, ContainsSubstring("refusal: \nopened\n") && ContainsSubstring("software works"));
}

TEST_CASE("A folder without the libraries is told with the file that is missing") {
  const Folder empty;
  check_refused(probe_folder(empty.path()), empty.file(kVerbs));
  check_refused(probe_folder("/nonexistent"), "/nonexistent/libibverbs.so.1");
}

TEST_CASE("A folder with one of the two libraries is told with the other one") {
  const Folder verbs_alone;
  verbs_alone.link(kFake + "/" + kVerbs, kVerbs);
  check_refused(probe_folder(verbs_alone.path()), verbs_alone.file(kCm));
  const Folder cm_alone;
  cm_alone.link(kFake + "/" + kCm, kCm);
  check_refused(probe_folder(cm_alone.path()), cm_alone.file(kVerbs));
}

TEST_CASE("A file that is no library is told by its name") {
  const Folder folder;
  std::ofstream(folder.file(kVerbs)) << "This is a text, and no library at all.\n";
  folder.link(kFake + "/" + kCm, kCm);
  check_refused(probe_folder(folder.path()), folder.file(kVerbs));
}

TEST_CASE("A library without a function is told with the function and the library") {
  const Folder folder;
  folder.link(kStubs + "/lacking/" + kVerbs, kVerbs);
  folder.link(kStubs + "/empty/" + kCm, kCm);
  const std::string said = probe_folder(folder.path());
  check_refused(said, "ibv_free_device_list");
  check_refused(said, folder.file(kVerbs));
  const Folder other;
  other.link(kFake + "/" + kVerbs, kVerbs);
  other.link(kStubs + "/empty/" + kCm, kCm);
  check_refused(probe_folder(other.path()), "rdma_create_event_channel");
  check_refused(probe_folder(other.path()), other.file(kCm));
}

TEST_CASE("diwarp's own libraries of these names are not taken for hardware's unless named") {
  const std::string folder = kStubs + "/drop_in";
  const std::string said = probe("LD_LIBRARY_PATH=" + folder);
  check_refused(said, "diwarp's own");
  check_refused(said, folder + "/" + kVerbs);
  check_refused(said, "DIWARP_RDMA_CORE");
  check_refused(probe_folder(folder), "ibv_get_device_list");  // it is taken, and has nothing
}

#ifdef DROP_IN_FOLDER
TEST_CASE("The drop-ins that are built bear that mark, and are taken where they are named") {
  const std::string folder = DROP_IN_FOLDER;
  check_refused(probe("LD_LIBRARY_PATH=" + folder), "diwarp's own");
  const std::string said = probe_folder(folder);
  CHECK_THAT(said, ContainsSubstring("verbs: " + folder + "/" + kVerbs + "\n"));
  CHECK_THAT(said, ContainsSubstring("cm: " + folder + "/" + kCm + "\n"));
  CHECK_THAT(said, ContainsSubstring("refusal: \n") && ContainsSubstring("diwarp0"));
  CHECK_THAT(said, ContainsSubstring("software works"));
}
#endif

TEST_CASE("Where forks need preparation, it is done before memory is registered, or told") {
  const std::string prepared = probe_folder(kFake, "copy-on-fork");
  CHECK_THAT(prepared, ContainsSubstring("opened\n") && !ContainsSubstring("not opened"));
  check_refused(probe_folder(kFake, "copy-on-fork fork"), "forked children");
}

}  // namespace diwarp::bridge_test
