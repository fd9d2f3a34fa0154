# Run by the installation: takes from the static library what this version of GCC wrote for itself to
# optimise when it links. Another version would refuse it.
cmake_path(ABSOLUTE_PATH DIWARP_ARCHIVE BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
execute_process(
  COMMAND "${DIWARP_OBJCOPY}" --wildcard --remove-section=.gnu.lto_*
    --remove-section=.gnu.debuglto_* --strip-symbol=__gnu_lto_v1 "$ENV{DESTDIR}${DIWARP_ARCHIVE}"
  COMMAND_ERROR_IS_FATAL ANY)
