# A page that stands alone, as two string constants: what comes before its data, and what after.
#   shoal_page(observe report TITLE "Shoal run" SCRIPTS report.js timeline.js)
# -> page/report.html with page/report.css and these scripts, each behind what all pages share (cmake/page), their heads too, in
#    shoal/observe/report_page.h as shoal::observe::kReportBefore and kReportAfter.
function(shoal_page room name)
  cmake_parse_arguments(PAGE "" "TITLE" "SCRIPTS" ${ARGN})
  set(shared ${PROJECT_SOURCE_DIR}/cmake/page)
  set(own ${CMAKE_CURRENT_SOURCE_DIR}/page)
  set(style "")
  set(script "")
  foreach(part ${shared}/page.css ${own}/${name}.css)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${part})
    file(READ ${part} text)
    string(APPEND style "${text}")
  endforeach()
  list(TRANSFORM PAGE_SCRIPTS PREPEND ${own}/)
  foreach(part ${shared}/page.js ${PAGE_SCRIPTS})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${part})
    file(READ ${part} text)
    string(APPEND script "${text}\n")
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shared}/head.html ${own}/${name}.html)
  file(READ ${shared}/head.html head)
  string(REPLACE "@TITLE@" "${PAGE_TITLE}" head "${head}")
  file(READ ${own}/${name}.html page)
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" "::" namespace "${path}")
  string(SUBSTRING ${name} 0 1 first)
  string(SUBSTRING ${name} 1 -1 rest)
  string(TOUPPER ${first} first)
  set(constant ${first}${rest})
  string(REPLACE "@HEAD@" "${head}" page "${page}")
  string(REPLACE "@STYLE@" "${style}" page "${page}")
  string(REPLACE "@SCRIPT@" "${script}" page "${page}")
  string(REPLACE "@DATA@" ")PAGE\";\ninline constexpr char k${constant}After[] = R\"PAGE(" page "${page}")
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/generated/${path}/${name}_page.h @ONLY CONTENT
"// Made from ${path}/page by CMake.
#pragma once

namespace ${namespace} {
inline constexpr char k${constant}Before[] = R\"PAGE(@page@)PAGE\";
}  // namespace ${namespace}
")
  target_include_directories(shoal_${room} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated)
endfunction()
