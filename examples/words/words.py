"""Word counts of a few books, and what each book is about: the functions, and a command for each.

The books are made up, the same ones every time, so that the example needs nothing from outside.
`pipeline.yaml` runs the commands below; `../words_flow.py` calls the functions.
"""

from __future__ import annotations

import json
import math
import random
import re
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

BOOKS = ("sea", "garden", "railway", "stars")
PARTS = 3  # a book is counted in so many parts
LENGTH = 600_000  # words of a book
THEMES = {
    "sea": "harbour tide anchor sail gull reef salt wave keel lantern storm shore",
    "garden": "rose hedge soil spade orchard bee moss seed lawn thorn pond gate",
    "railway": "engine signal platform whistle steam track tunnel porter coal bridge ticket gate",
    "stars": "comet orbit telescope nebula moon eclipse dusk planet lantern tide dome night",
}

Counts = dict[str, int]


def write_book(title: str) -> str:
    """A book: common words, few of them very common, and now and then one of its theme."""
    drawn = random.Random(title)
    common = _vocabulary(4000)
    frequency = [1 / (place + 3) for place in range(len(common))]  # Zipf's law
    words = drawn.choices(common, frequency, k=LENGTH)
    theme = THEMES[title].split()
    places = drawn.sample(range(LENGTH), LENGTH // 50)
    telling = drawn.choices(theme, range(len(theme), 0, -1), k=len(places))
    for place, word in zip(places, telling, strict=True):
        words[place] = word
    lines, start = [], 0
    while start < LENGTH:
        end = start + drawn.randint(5, 15)
        lines.append(" ".join(words[start:end]).capitalize() + ".")
        start = end
    return "\n".join(lines) + "\n"


def _vocabulary(size: int) -> list[str]:
    """Words that nobody has heard of, the shorter the more common."""
    drawn = random.Random(0)
    syllables = [a + b for a in "bdfgklmnprstvw" for b in ("a", "e", "i", "o", "u", "ar", "en")]
    found: dict[str, None] = {}
    while len(found) < size:
        parts = 1 + min(3, len(found) // 60)
        found["".join(drawn.choices(syllables, k=parts))] = None
    return list(found)


def split_book(text: str, parts: int = PARTS) -> list[str]:
    """The book in parts of about the same number of lines."""
    lines = text.splitlines(keepends=True)
    ends = [len(lines) * i // parts for i in range(parts + 1)]
    return ["".join(lines[a:b]) for a, b in pairwise(ends)]


def count_words(text: str) -> Counts:
    """How often each word occurs, the most frequent first."""
    return _sorted(Counter(word.lower() for word in re.findall(r"[^\W\d_]+", text)))


def merge_counts(*counts: Counts) -> Counts:
    """The counts of several texts together."""
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return _sorted(total)


def _sorted(counts: Counter[str]) -> Counts:
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def distinctive(own: Counts, *others: Counts) -> dict[str, float]:
    """The words that tell a book from the others (tf-idf), the most telling first."""
    books, length = 1 + len(others), sum(own.values())
    scores = {
        word: count / length * math.log(books / (1 + sum(word in other for other in others)))
        for word, count in own.items()
    }
    best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:8]
    return {word: round(score * 1000, 4) for word, score in best}


def summary(total: Counts, scores: dict[str, dict[str, float]]) -> str:
    """What was found, as Markdown."""
    lines = [f"# {len(scores)} books, {sum(total.values()):,} words, {len(total):,} different", ""]
    lines += ["| book | is about |", "|---|---|"]
    lines += [f"| {title} | {', '.join(list(best)[:6])} |" for title, best in scores.items()]
    most = list(total.items())[:10]
    lines += ["", "The most frequent words:", "", "```"]
    lines += [f"{word:>6} {'#' * round(40 * n / most[0][1])} {n:,}" for word, n in most]
    return "\n".join([*lines, "```", ""])


def chart(scores: dict[str, dict[str, float]]) -> str:
    """The most telling words of each book, as an SVG with bars."""
    longest = max(score for best in scores.values() for score in best.values())
    colours = ("#4477aa", "#228833", "#aa3377", "#ccbb44")
    parts, y = [], 10
    for i, (title, best) in enumerate(scores.items()):
        parts.append(f'<text x="10" y="{y + 14}" font-weight="bold">{title}</text>')
        for word, score in best.items():
            y += 18
            width = 380 * score / longest
            parts.append(f'<text x="110" y="{y + 12}" text-anchor="end">{word}</text>')
            colour = colours[i % len(colours)]
            parts.append(f'<rect x="118" y="{y}" width="{width:.1f}" height="14" fill="{colour}"/>')
        y += 30
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="520" height="{y}"'
    return "\n".join([f'{head} font-family="sans-serif" font-size="13">', *parts, "</svg>\n"])


def _read(path: str) -> Counts:
    counts: Counts = json.loads(Path(path).read_text(encoding="utf-8"))
    return counts


def _scores(paths: list[str]) -> dict[str, dict[str, float]]:
    return {title: json.loads(Path(p).read_text()) for title, p in zip(BOOKS, paths, strict=True)}


def main(command: str, *names: str) -> None:
    """Run one command; the files that it reads come first, those that it makes come last."""
    inputs, output = list(names[:-1]), names[-1]
    match command:
        case "write":
            made = write_book(inputs[0])
        case "split":
            parts = split_book(Path(names[0]).read_text(encoding="utf-8"), len(names) - 1)
            for path, part in zip(names[1:], parts, strict=True):
                Path(path).write_text(part, encoding="utf-8")
            return
        case "count":
            made = json.dumps(count_words(Path(inputs[0]).read_text(encoding="utf-8")))
        case "merge":
            made = json.dumps(merge_counts(*map(_read, inputs)))
        case "distinctive":
            made = json.dumps(distinctive(*map(_read, inputs)))
        case "summary":
            made = summary(_read(inputs[0]), _scores(inputs[1:]))
        case "chart":
            made = chart(_scores(inputs))
        case _:
            raise SystemExit(f"unknown command {command!r}")
    Path(output).write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
