"""Text in pictures: which characters the font has, and how wide they are."""

from __future__ import annotations

FONT = "DejaVu Sans"  # the one that comes with matplotlib, so that pictures are the same anywhere
MISSING = "\u25a1"
ELLIPSIS = "\u2026"
_SIZE = 100.0


class Lettering:
    """Measures and cleans text for one picture."""

    def __init__(self) -> None:
        from matplotlib.font_manager import findfont
        from matplotlib.ft2font import FT2Font

        self._font = FT2Font(findfont(FONT))
        self._font.set_size(_SIZE, 72)
        self._known = self._font.get_charmap()
        self._advance: dict[str, float] = {}

    def clean(self, text: str, longest: int = 120) -> str:
        """The text on one line, of bounded length, with a box for what the font has not."""
        text = text if len(text) <= longest else _shortened(text, longest - 1)
        return "".join(
            c if c.isprintable() and ord(c) in self._known else (" " if c.isspace() else MISSING)
            for c in text
        )

    def width(self, text: str) -> float:
        """The width of clean text, in units of the font size."""
        return sum(self._width_of(c) for c in text)

    def fitted(self, text: str, width: float, fewest: int = 6) -> str:
        """The clean text, without its middle if need be; empty if hardly any would be left."""
        if width < self._width_of(ELLIPSIS):
            return ""
        text = self.clean(text)
        if self.width(text) <= width:
            return text
        room = width - self._width_of(ELLIPSIS)
        for kept in range(min(len(text) - 1, int(room / 0.25)), fewest - 1, -1):
            short = _shortened(text, kept)
            if self.width(short) <= width:
                return short
        return ""

    def _width_of(self, character: str) -> float:
        if character not in self._advance:
            glyph = self._font.load_char(ord(character))
            self._advance[character] = glyph.linearHoriAdvance / 65536 / _SIZE
        return self._advance[character]


def _shortened(text: str, kept: int) -> str:
    """Without its middle: the ends of a name say what kind of thing it is, and which one."""
    return text[: kept // 2] + ELLIPSIS + text[len(text) - (kept - kept // 2) :]
