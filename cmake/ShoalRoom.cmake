# How a room, a test and a benchmark are declared. Every source of a room's folder belongs to it:
#   shoal_room(net LINKS core Threads::Threads)      -> target shoal_net, alias shoal::net
#   shoal_test(net/handshake LINKS net)              -> tests/net/handshake.cc in the program test_net, CTest name net/handshake

find_program(SHOAL_CCACHE ccache)
if(SHOAL_CCACHE)
  # Paths below this folder count as relative, so that another checkout finds what this one has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${SHOAL_CCACHE})
endif()
# __FILE__ is a path in the checkout, not where the checkout lies: objects of one are those of another, and messages name no machine's folders.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(CMAKE_UNITY_BUILD AND NOT CMAKE_UNITY_BUILD_BATCH_SIZE)
  # Files that are compiled as one. On few cores as many as there are in a room: what they share is compiled once, a fifth of it all; on more, so many that
  # all have work. A unit of 64 takes up to 2 GB.
  cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
  cmake_host_system_information(RESULT megabytes QUERY TOTAL_PHYSICAL_MEMORY)
  set(files 12)
  if(cores LESS_EQUAL 4 AND megabytes GREATER 8000)
    set(files 64)
  endif()
  set(CMAKE_UNITY_BUILD_BATCH_SIZE ${files} CACHE STRING "Files that are compiled as one")
endif()
find_program(SHOAL_MOLD mold)
if(SHOAL_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

find_package(Threads REQUIRED)

add_library(shoal_flags INTERFACE)
target_compile_options(shoal_flags INTERFACE -Wall -Wextra $<$<BOOL:${SHOAL_WARNINGS_END_THE_BUILD}>:-Werror> -Wshadow -Wnon-virtual-dtor)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlaps in "text" + std::string that are not there (GCC bug 105651).
  target_compile_options(shoal_flags INTERFACE -Wno-restrict)
endif()
if(CMAKE_UNITY_BUILD)
  # Several files in one (CMakePresets.json): what is local to one of them then looks as if a header had it.
  target_compile_options(shoal_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage> -Wno-shadow)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Asio 1.22 does not know that this clang has coroutines.
  target_compile_definitions(shoal_flags INTERFACE ASIO_HAS_CO_AWAIT=1 ASIO_HAS_STD_COROUTINE=1)
  # std::stable_sort of libstdc++ 12 uses what C++17 deprecates, and this clang says so at each of our calls.
  target_compile_options(shoal_flags INTERFACE -Wno-deprecated-declarations)
endif()
if(SHOAL_SANITIZE)
  add_compile_options(-fsanitize=${SHOAL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SHOAL_SANITIZE})
  # With its checks in the way g++ no longer sees that the standard library's own members were set.
  target_compile_options(shoal_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND SHOAL_SANITIZE MATCHES "address")
    # A third of the compile time for what is found without: address stops at null, and nothing here has casts between classes.
    add_compile_options(-fno-sanitize=null,vptr,object-size -fsanitize-address-outline-instrumentation)
  endif()
endif()

# Of tests and of the program around the rooms: nothing there is worth what optimizing it takes, least of all with sanitizers.
set(SHOAL_QUICKLY_COMPILED $<$<CONFIG:Release>:-O1> $<$<CONFIG:RelWithDebInfo>:-O0>)

function(shoal_room name)
  cmake_parse_arguments(ROOM "" "" "LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(NOT sources)
    message(STATUS "shoal/${name} has no sources yet")
    add_library(shoal_${name} INTERFACE)
    install(TARGETS shoal_${name} EXPORT shoal)
    return()
  endif()
  add_library(shoal_${name} STATIC ${sources})
  add_library(shoal::${name} ALIAS shoal_${name})
  target_include_directories(shoal_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
  target_compile_features(shoal_${name} PUBLIC cxx_std_20)
  target_link_libraries(shoal_${name} PRIVATE $<BUILD_INTERFACE:shoal_flags>)
  foreach(link IN LISTS ROOM_LINKS)
    if(TARGET shoal_${link})
      set(link shoal_${link})
    endif()
    target_link_libraries(shoal_${name} PUBLIC ${link})
  endforeach()
  set_target_properties(shoal_${name} PROPERTIES EXPORT_NAME ${name})
  # What needs PyTorch is asked for by name (shoalConfig.cmake).
  set(export shoal)
  if(name STREQUAL "nn")
    set(export shoal_torch)
  endif()
  install(TARGETS shoal_${name} EXPORT ${export} COMPONENT development)
endfunction()

add_custom_target(shoal_tests)   # what tests need, and no more

# A test file is a CTest entry; the files of a folder are one program, of which it runs the suites in that file. ALONE: a program of its own.
# THREADS: what runs in it has threads, so it is built under the thread sanitizer too. DATA: it reads the real sets of SHOAL_DATA, which lie beside the
# project where its developers and its CI work.
function(shoal_test path)
  cmake_parse_arguments(TEST "ALONE;THREADS;DATA" "TIMEOUT" "LINKS" ${ARGN})
  if(SHOAL_SANITIZE STREQUAL "thread" AND NOT TEST_THREADS)
    return()
  endif()
  set(source ${PROJECT_SOURCE_DIR}/tests/${path}.cc)
  get_filename_component(program ${path} DIRECTORY)
  if(TEST_ALONE)
    set(program ${path})
  endif()
  string(REPLACE "/" "_" target "test_${program}")
  if(NOT TARGET ${target})
    add_executable(${target})
    add_dependencies(shoal_tests ${target})
    target_compile_options(${target} PRIVATE ${SHOAL_QUICKLY_COMPILED})
    target_link_libraries(${target} PRIVATE shoal_flags GTest::gtest GTest::gmock GTest::gtest_main)
    if(SHOAL_SANITIZE STREQUAL "thread")
      target_sources(${target} PRIVATE ${SHOAL_TSAN_OPTIONS})
      # Else the files that are compiled together would be others than in the builds that are tried most.
      set_source_files_properties(${SHOAL_TSAN_OPTIONS} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endif()
  target_sources(${target} PRIVATE ${source})
  foreach(link IN LISTS TEST_LINKS)
    if(TARGET shoal_${link})
      set(link shoal_${link})
    endif()
    target_link_libraries(${target} PRIVATE ${link})
  endforeach()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 60)
    if(SHOAL_SANITIZE)
      set(TEST_TIMEOUT 240)
    endif()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(STRINGS ${source} tests REGEX "^(TYPED_)?TEST(_F|_P)?\\(")
  list(TRANSFORM tests REPLACE "^[A-Z_]+\\(([A-Za-z0-9_]+).*" "\\1.*:*/\\1.*:\\1/*")
  list(REMOVE_DUPLICATES tests)
  list(JOIN tests ":" suites)
  add_test(NAME ${path} COMMAND ${target} "--gtest_filter=${suites}")
  set_tests_properties(${path} PROPERTIES TIMEOUT ${TEST_TIMEOUT})
  if(TEST_DATA AND NOT DEFINED ENV{SHOAL_DATA} AND EXISTS ${PROJECT_SOURCE_DIR}/../shared/data)
    set_tests_properties(${path} PROPERTIES ENVIRONMENT SHOAL_DATA=${PROJECT_SOURCE_DIR}/../shared/data)
  endif()
endfunction()
