"""A document: the plain values of a YAML or JSON file."""

from __future__ import annotations

import os
from pathlib import Path

from weft.files import in_file, read_text
from weft.formats.json_text import parse_json
from weft.formats.yaml_text import parse_yaml


def read_document(path: str | os.PathLike[str]) -> object:
    """The content of a JSON file (by its suffix) or else a YAML file."""
    text = read_text(path)
    with in_file(path):
        is_json = Path(path).suffix.lower() == ".json"
        return parse_json(text) if is_json else parse_yaml(text)
