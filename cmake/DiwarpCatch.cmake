# Catch2, version 2 or 3: the one place in CMake that tells them apart. tests/support/catch.h is its
# counterpart in C++. Both versions have the target Catch2::Catch2; main() is in tests/main.cpp.
include_guard()
find_package(Catch2 REQUIRED)
if(Catch2_VERSION VERSION_LESS 2.13)
  message(FATAL_ERROR "The tests need Catch2 2.13 or later, and this is ${Catch2_VERSION}")
endif()
include(Catch)

# diwarp_discover_cases(TARGET PREFIX [property value ...])
#
# Each case of a test program that DIWARP_TEST_CASES specifies (empty: each one) becomes a test of
# CTest, <prefix><case>, with these properties. They do not go through Catch2's script, whose versions
# take lists apart differently: it leaves the names of the tests in <target>_TESTS, and a script that
# CTest reads next sets their properties.
function(diwarp_discover_cases target prefix)
  set(arguments)
  if(Catch2_VERSION VERSION_LESS 3)
    # A name that matches no case must fail, not pass as an empty run. Version 3 does so by itself.
    set(arguments EXTRA_ARGS --warn NoTests)
  endif()
  if(DIWARP_TEST_CASES)
    list(APPEND arguments TEST_SPEC "${DIWARP_TEST_CASES}")
  endif()
  catch_discover_tests(${target} TEST_PREFIX "${prefix}" ${arguments})
  set(script "${CMAKE_CURRENT_BINARY_DIR}/${target}_properties.cmake")
  list(JOIN ARGN "]==] [==[" properties)
  file(WRITE "${script}"
    "if(${target}_TESTS)\n"
    "  set_tests_properties(\${${target}_TESTS} PROPERTIES [==[${properties}]==])\n"
    "endif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${script}")
endfunction()
