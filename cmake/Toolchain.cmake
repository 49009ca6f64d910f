# ccache and mold where the machine has them; warnings everywhere.
find_program(CCACHE ccache)
if(CCACHE)
  # A precompiled header is fine for ccache once it may ignore the header's own time stamps. Paths are taken from the root, so that trees beside
  # each other (build, build-runtime-only) share what they compile alike.
  set(CCACHE_SETTINGS CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${CCACHE_SETTINGS} ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${CCACHE_SETTINGS} ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
add_compile_options(-Wall -Wextra -Wno-unused-parameter)
