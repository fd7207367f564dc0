#include "shoal/topo/paper.h"

#include <fmt/format.h>

namespace shoal::topo {
namespace {

constexpr const char* kStyle = R"(<style>
.paper{fill:#ffffff}.ink{fill:#1c2733}.faint{fill:#5b6773}.link{stroke:#8a99a8;fill:none;stroke-linecap:round}.slow{stroke:#c2571a}
.host{fill:#0b6e99;stroke:#ffffff;stroke-width:1.5}.switch{fill:#ffffff;stroke:#1c2733;stroke-width:2}.name,.rate{paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round}.inside{fill:#ffffff}
@media (prefers-color-scheme:dark){.paper{fill:#12181f}.ink{fill:#e4e9ee}.faint{fill:#a3afbb}.link{stroke:#6b7987}.slow{stroke:#f0884a}
.host{fill:#3f9dc6;stroke:#12181f}.switch{fill:#12181f;stroke:#e4e9ee}.name,.rate{stroke:#12181f}.inside{fill:#0d1319}}
</style>
)";

}  // namespace

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      safe += c;
  }
  return safe;
}

std::string svg_paper(const std::string& title, double width, double height) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
             "height=\"{1:.0f}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n",
             width, height) +
         kStyle + "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n" +
         fmt::format("<title>{0}</title>\n<text class=\"ink\" x=\"20\" y=\"28\" font-size=\"16\">{0}</text>\n", escaped(title));
}

}  // namespace shoal::topo
