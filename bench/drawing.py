"""Drawings of figures as plain SVG: lines, dots and words, at places that the drawer reckons."""

from __future__ import annotations

INK, FAINT = "#1c2733", "#c9d2dc"


class Drawing:
    """A sheet; what is drawn first lies below."""

    def __init__(self, width: int, height: int, title: str):
        self.width, self.height, self.parts = width, height, []
        self.text(24, 30, title, size=15)

    def text(self, x: float, y: float, text: str, anchor: str = "start", colour: str = INK, size: int = 12) -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}">{text}</text>')

    def line(self, points: list[tuple[float, float]], colour: str, more: str = "") -> None:
        self.parts.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" stroke="{colour}" {more}/>')

    def dot(self, place: tuple[float, float], colour: str) -> None:
        self.parts.append(f'<circle cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="3.5" fill="{colour}"/>')

    def write(self, file: str) -> None:
        with open(file, "w", encoding="utf-8") as out:
            out.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" font-family="system-ui, sans-serif">\n'
                      '<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(self.parts) + "\n</svg>\n")
