"""Scripts without spaces: their tables against those of Unicode, and clusters by hand."""

import re
import sys
import unicodedata

import pytest

from attention_jax.data.text.scripts import (
    CLUSTER,
    LETTERS,
    are_chinese,
    are_given_in_words,
    writes_no_spaces,
)

# What the names of letters and marks of these scripts begin with.
NAMES = (
    "CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH", "IDEOGRAPHIC ITERATION", "HIRAGANA",
    "KATAKANA", "HALFWIDTH KATAKANA LETTER", "HALFWIDTH KATAKANA-HIRAGANA PROLONGED", "HENTAIGANA",
    "THAI", "LAO", "KHMER", "MYANMAR",
)  # fmt: skip
# Han of other categories or names.
OTHERS = "〆〇〡〢〣〤〥〦〧〨〩〸〹〺〻"


def test_letters_are_those_of_unicode():
    letters = re.compile(f"[{LETTERS}]")
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        name, category = unicodedata.name(character, ""), unicodedata.category(character)
        expected = (name.startswith(NAMES) and category[0] == "L") or character in OTHERS
        if name:
            assert bool(letters.match(character)) == expected, f"{number:x} {name}"


def test_marks_of_these_scripts_belong_to_the_letter_before_them():
    for block in ("\u0e00-\u0eff", "\u1000-\u109f", "\u1780-\u17ff", "\ua9e0-\ua9ff\uaa60-\uaa7f"):
        for character in filter(re.compile(f"[{block}]").match, map(chr, range(0xE00, 0xAA80))):
            if unicodedata.category(character)[0] == "M":
                assert re.fullmatch(CLUSTER, f"ก{character}"), f"{ord(character):x}"
                assert not writes_no_spaces(character)


@pytest.mark.parametrize(
    ("text", "clusters"),
    [
        ("图书馆", ["图", "书", "馆"]),
        ("ラーメンが", ["ラ", "ー", "メ", "ン", "が"]),
        ("か\u3099", ["か\u3099"]),  # the same as one character
        ("ไม่น้ำ", ["ไ", "ม่", "น้ำ"]),
        ("ພາສາ", ["ພ", "າ", "ສ", "າ"]),
        ("ខ្មែរ", ["ខ្មែ", "រ"]),  # one letter is written below another
        ("မြန်မာ", ["မြ", "န်", "မာ"]),
        ("สวัสดี", ["ส", "วั", "ส", "ดี"]),
        ("葛\U000e0100城", ["葛\U000e0100", "城"]),  # a variant of the first ideograph
    ],
)
def test_clusters(text, clusters):
    assert re.findall(CLUSTER, text) == clusters


@pytest.mark.parametrize("text", ["", "Käse", "привет", "안녕", "नमस्ते", "١٢", "๑๒", "、。"])
def test_other_text_has_none(text):
    assert not writes_no_spaces(text)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["我 喜欢 书 。", "你好"], True),
        (["我喜欢书。", "你 好 ，", "谢谢", "再见", "早"], False),
        (["私 は 本 を 読み ます 。"], True),
        (["ฉัน ชอบ หนังสือ"], True),
        # Thai has spaces between clauses, and Chinese around Latin words.
        (["ฉันชอบหนังสือมาก แต่ว่าไม่ค่อยมีเวลาอ่าน"], False),
        (["我用 Python 写程序", "他用 Java 写程序"], False),
        (["我\u3000喜欢\u00a0书"], False),
        (["one two three", "한국어 는 띄어 쓴다"], False),
        (["one two three", "我 喜欢 书"], True),
        ([], False),
    ],
)
def test_texts_that_are_given_in_words(texts, expected):
    assert are_given_in_words(texts) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["我喜欢书。", "one two", "你好 Tom"], True),
        (["我喜欢书。", "本を読みます。", "ありがとう"], False),
        (["日本", "東京", "カメラ"], True),
        (["ฉันชอบหนังสือ"], False),
        (["one two"], False),
        ([], False),
    ],
)
def test_chinese_has_ideographs_alone(texts, expected):
    assert are_chinese(texts) == expected
