# Everything from outside, found once. ISA-L is optional: without it CRC32C falls back to a table.
find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(spdlog REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(liburing REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(isal IMPORTED_TARGET libisal)
