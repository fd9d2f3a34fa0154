// SPDX-License-Identifier: Apache-2.0
// What diwarp-run reads of what the loader says of a program.
#include "run/loading.h"

#include "support/catch.h"

using namespace diwarp::tools;

TEST_CASE("The loader's answer tells which libraries a program gets") {
  const Loading loading = parse_loading(
      "\tlinux-vdso.so.1 (0x00007ffd)\n"
      "\tlibibverbs.so.1 => /opt/diwarp/libibverbs.so.1 (0x00007f01)\n"
      "\tlibrdmacm.so.1 => not found\n");
  CHECK(loading.dynamic);
  CHECK(loading.verbs == "/opt/diwarp/libibverbs.so.1");
  CHECK(loading.missing == std::vector<std::string>{"librdmacm.so.1 => not found"});
}

TEST_CASE("A symbol with a version, or named as those of RDMA, is missing where it is undefined") {
  const auto missing = [](const std::string& line) { return parse_loading(line).missing.size(); };
  CHECK(missing("undefined symbol: ibv_new_call\t(./program)\n") == 1);
  CHECK(missing("undefined symbol: rdma_new_call\t(./program)\n") == 1);
  CHECK(missing("undefined symbol: verbs_allow, version IBVERBS_PRIVATE_99\t(./libx.so)\n") == 1);
  CHECK(missing("undefined symbol: rsocket, version RDMACM_1.0\t(./program)\n") == 1);
  CHECK(missing("./program: ./libibverbs.so.1: version `IBVERBS_9.9' not found\n") == 1);
}

TEST_CASE("A symbol that a plug-in takes from its program is not missing") {
  CHECK(parse_loading("undefined symbol: PyExc_ValueError\t(./device.so)\n").missing.empty());
}

TEST_CASE("What is linked statically is told") {
  CHECK_FALSE(parse_loading("\tnot a dynamic executable\n").dynamic);
  CHECK_FALSE(parse_loading("\tstatically linked\n").dynamic);
}
