# Precompiled headers of the runtime and of the unit tests (Mlir.cmake has the compiler's). Each is built through an object library of its own,
# with the flags of those that read it: GCC takes a precompiled header only where -fPIC or -fPIE is the same.
find_package(fmt REQUIRED)
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cpp CONTENT "// the precompiled headers are built through this file\n")

# zero_precompiled(NAME header LINK libraries…)
function(zero_precompiled name header)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  target_precompile_headers(${name} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/${header})
endfunction()

zero_precompiled(zero_runtime_pch runtime_pch.h LINK fmt::fmt protobuf::libprotobuf-lite)
if(ZERO_BUILD_TESTS)
  find_package(GTest REQUIRED)
  zero_precompiled(zero_test_pch test_pch.h LINK fmt::fmt protobuf::libprotobuf-lite GTest::gtest)
  set_target_properties(zero_test_pch PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(zero_test_pch PRIVATE -fPIE)
endif()
