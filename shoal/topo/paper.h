// What Shoal's drawings of networks and of what goes over them have alike: one SVG, nothing outside it, in the reader's light or dark colours. Classes:
// paper, ink, faint (text), link and slow (lines), host and switch (shapes), inside (text in a shape), name and rate (text over lines).
#pragma once

#include <string>

namespace shoal::topo {

std::string escaped(const std::string& text);  // as text of an SVG; control characters are left out

// An SVG of that size in pixels up to its title, 28 pixels from above. What follows ends with </svg>.
std::string svg_paper(const std::string& title, double width, double height);

}  // namespace shoal::topo
