"""Characters that a figure's fonts lack: looked for in others, or said."""

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager

from attention_jax.plotting import fonts
from attention_jax.plotting.figure import new_figure, save_figure, text_style


@pytest.fixture(autouse=True)
def _fonts_as_they_were(monkeypatch):
    """Matplotlib's own fonts are there alone, and what a test installs is gone after it."""
    manager = font_manager.fontManager
    own = [entry for entry in manager.ttflist if entry.name.startswith("DejaVu")]
    monkeypatch.setattr(manager, "ttflist", own)
    fonts.fonts.cache_clear()
    monkeypatch.setattr(fonts, "_said", set())
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda *arguments, **keywords: [])
    yield
    fonts.fonts.cache_clear()


def _font(path, name, characters):
    """Writes a font that draws each of some characters as a full square."""
    glyphs = [".notdef", *(f"u{ord(character):04X}" for character in characters)]
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for corner in ((0, 1000), (1000, 1000), (1000, 0)):
        pen.lineTo(corner)
    pen.closePath()
    square = pen.glyph()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(glyphs)
    builder.setupCharacterMap(dict(zip(map(ord, characters), glyphs[1:], strict=True)))
    builder.setupGlyf(dict.fromkeys(glyphs, square))
    builder.setupHorizontalMetrics(dict.fromkeys(glyphs, (1000, 0)))
    builder.setupHorizontalHeader(ascent=1000, descent=0)
    builder.setupNameTable({"familyName": name, "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)
    return str(path)


def _draw(path, text):
    figure = new_figure(2.0, 1.0)
    figure.text(0.1, 0.1, text, **text_style(20))
    save_figure(figure, path)
    return path.read_bytes()


def test_a_font_installed_since_is_found_whatever_its_name(tmp_path, monkeypatch, capsys):
    boxes = _draw(tmp_path / "a.png", "\u6c49x")
    assert "\u6c49 (U+6C49); install Noto Sans CJK\n" in capsys.readouterr().err
    font = _font(tmp_path / "font.ttf", "Font Of Nowhere", "\u6c49")
    broken = tmp_path / "broken.ttf"
    broken.write_bytes(b"no font")
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda *_, **__: [str(broken), font])
    assert _draw(tmp_path / "b.png", "\u6c49x") != boxes
    assert capsys.readouterr().err == ""


def test_what_no_font_has_is_said_once(tmp_path, capsys):
    _draw(tmp_path / "a.svg", "\u6c49\u5b57 \u0e01 \U0001fae0")
    said = capsys.readouterr().err
    assert said == (
        "notice: drawn as boxes, for no installed font has them: \u0e01 (U+0E01) and 3 more; "
        "install Noto Sans Thai and Noto Sans CJK and Noto Emoji or Noto Sans Symbols 2\n"
    )
    _draw(tmp_path / "a.svg", "\u6c49\u5b57 \u0e01")
    assert capsys.readouterr().err == ""


def test_a_figure_whose_fonts_have_everything_looks_for_none(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda *_, **__: pytest.fail("looked"))
    _draw(tmp_path / "a.png", "Käse \u0438")
    assert capsys.readouterr().err == ""
