# The preset `portable`: zerorun and gpu-check that start on any x86-64 Linux whose glibc is no older than the one they are built with, and with
# nothing of ours installed, to be carried to a machine with GPUs (test/gpu/bundle.sh). Libraries are linked statically, but for libcrypto, which is carried along, and what such a machine
# need not have is left out: MPI (ranks find each other over TCP), and the device for processors with oneDNN.
# libstdc++ is static too, so that NVIDIA's libraries, which are opened at run time, find the machine's own. All is compiled as in other
# builds, whose compiler cache serves this one.
option(ZERO_PORTABLE "Build programs to be carried to machines with GPUs: static, without MPI and the device for processors" OFF)
if(ZERO_PORTABLE)
  set(Protobuf_USE_STATIC_LIBS ON)
  set(ZLIB_USE_STATIC_LIBS ON)
  find_library(OPENSSL_CRYPTO_LIBRARY libcrypto.so) # large: all programs share one, in ../lib beside them
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(CMAKE_BUILD_RPATH $ORIGIN/../lib)
  add_link_options(-static-libstdc++ -static-libgcc -Wl,--as-needed,--gc-sections,--disable-new-dtags)
endif()

# zero_portable(program…): with its own copy of fmt in a portable build, as Debian has no libfmt.a.
function(zero_portable)
  if(ZERO_PORTABLE)
    if(NOT TARGET zero_fmt)
      add_library(zero_fmt OBJECT ${CMAKE_SOURCE_DIR}/cmake/portable_fmt.cpp)
    endif()
    foreach(program ${ARGN})
      target_sources(${program} PRIVATE $<TARGET_OBJECTS:zero_fmt>)
    endforeach()
  endif()
endfunction()
