"""The spellings of Chinese texts by pypinyin. Name it in the setting: ``"redis_kit.autocomplete.pinyin.spellings"``."""

from pypinyin import Style, lazy_pinyin


def spellings(text: str) -> list[str]:
    """Return the syllables of a text with Chinese characters, the same as one word, and their first letters."""
    if not any("\u3400" <= character <= "\u9fff" for character in text):
        return []
    syllables = lazy_pinyin(text)
    return [" ".join(syllables), "".join(syllables), "".join(lazy_pinyin(text, style=Style.FIRST_LETTER))]
