"""BM25 in plain Python, to compare rankings with: exact lengths, exact scores, and no word is too common."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import log, sqrt

from redis_kit.search.documents import K1, B, Document


class Reference:
    """All documents and their words, in memory."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        self._postings: dict[str, dict[str, float]] = defaultdict(dict)
        average = sum(document.length for document in documents.values()) / len(documents)
        self._saturation = {id: K1 * (1 - B + B * each.length / average) for id, each in documents.items()}
        for id, document in documents.items():
            for word, count in document.counts.items():
                self._postings[word][id] = count

    def scores(self, words: Iterable[str]) -> dict[str, float]:
        """Return the score of each document that has one of the words."""
        scores: dict[str, float] = defaultdict(float)
        for word in set(words):
            postings = self._postings.get(word, {})
            idf = log(1 + (len(self._saturation) - len(postings) + 0.5) / (len(postings) + 0.5))
            for id, count in postings.items():
                scores[id] += idf * count * (K1 + 1) / (count + self._saturation[id])
        return scores


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the rank correlation of two lists of scores; equal scores share their mean rank. 1 if nothing differs."""
    first, second = _ranks(one), _ranks(other)
    mean = (len(one) - 1) / 2
    covariance = sum((a - mean) * (b - mean) for a, b in zip(first, second, strict=True))
    spread = sqrt(sum((a - mean) ** 2 for a in first) * sum((b - mean) ** 2 for b in second))
    return covariance / spread if spread else float(first == second)


def _ranks(scores: Sequence[float]) -> list[float]:
    places: dict[float, list[int]] = defaultdict(list)
    for place, score in enumerate(sorted(round(score, 3) for score in scores)):
        places[score].append(place)
    return [sum(places[round(score, 3)]) / len(places[round(score, 3)]) for score in scores]
