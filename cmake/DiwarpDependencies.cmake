# Everything from outside, found once. ISA-L is optional: without it CRC32C falls back to a table.
# Targets that pkg-config finds are known in this project's folders alone: a project that diwarp is
# part of may have a spdlog of its own.
find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(spdlog REQUIRED spdlog)
pkg_check_modules(liburing REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(isal IMPORTED_TARGET libisal)

# rdma-core's headers, for the bridge to hardware devices, which loads its libraries when a program asks
# for such a device, and for the drop-ins, which stand in for them.
option(DIWARP_BRIDGE "Build the bridge to hardware devices, where rdma-core's headers are found" ON)
option(DIWARP_DROP_IN "Build the drop-ins for libibverbs and librdmacm, where their headers are found" ${PROJECT_IS_TOP_LEVEL})
if(DIWARP_BRIDGE OR DIWARP_DROP_IN)
  find_path(RDMA_CORE_INCLUDE infiniband/verbs.h)
  find_path(RDMA_CM_INCLUDE rdma/rdma_cma.h)
  mark_as_advanced(RDMA_CORE_INCLUDE RDMA_CM_INCLUDE)
  if(RDMA_CORE_INCLUDE AND RDMA_CM_INCLUDE)
    add_library(rdma_core_headers INTERFACE)
    target_include_directories(rdma_core_headers SYSTEM INTERFACE
      "${RDMA_CORE_INCLUDE}" "${RDMA_CM_INCLUDE}")
  else()
    message(STATUS "Without hardware devices and drop-ins: the headers of libibverbs and librdmacm are missing")
    set(DIWARP_BRIDGE OFF)
    set(DIWARP_DROP_IN OFF)
  endif()
endif()
