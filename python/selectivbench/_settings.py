"""Settings of a config as the resolver takes them."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

from ._checks import plain, shown

Setting = Union[bool, int, float, str, "list[int]"]
Item = tuple[str, Any, str]


def items(settings: Mapping[str, Any], section: str = "") -> list[Item]:
    """Settings as the resolver takes them. Messages name each by its text: gap_max=50."""
    prefix = section + "." if section else ""
    return [(prefix + key, plain(value), f"{key}={shown(plain(value))}") for key, value in settings.items()]


def given_items(keywords: Mapping[str, Any], section: str) -> list[Item]:
    """The same for keywords; None means the default."""
    return items({key: value for key, value in keywords.items() if value is not None}, section)
