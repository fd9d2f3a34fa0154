# Everything from outside, found once. ISA-L is optional: without it CRC32C falls back to a table.
# Targets that pkg-config finds are known in this project's folders alone: a project that diwarp is
# part of may have a spdlog of its own.
find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(spdlog REQUIRED spdlog)
pkg_check_modules(liburing REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(isal IMPORTED_TARGET libisal)
