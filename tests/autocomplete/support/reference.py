"""The same search over a plain list: what an index has to answer."""

from math import frexp

from redis_kit.autocomplete.words import query_words, words


class Reference:
    """Entries by scope and id."""

    def __init__(self):
        self.entries = {}

    def add(self, id, text, weight=0, scope=None):
        self.entries[scope, str(id)] = (text, weight)

    def remove(self, id, scope=None):
        self.entries.pop((scope, str(id)), None)

    def search(self, query, limit=10, scope=None):
        """Return ids and texts in the order of an index."""
        first, *others = query_words(query) or [""]
        found = []
        for (of, id), (text, weight) in self.entries.items():
            if of == scope:
                level = frexp(weight)[1] if weight >= 1 else 0
                every = words(text)
                for place, word in enumerate(every):
                    left = every[:place] + every[place + 1 :]
                    if word.startswith(first) and take_each(others, left):
                        rotation = " ".join(every[place:] + every[:place])
                        found.append((-level, rotation.encode(), id.encode(), id, text))
        return list(dict.fromkeys((id, text) for *_order, id, text in sorted(found)))[:limit]


def take_each(queries, left):
    """Return whether each query begins a word of its own, by trying all ways."""
    if not queries:
        return True
    first, *others = queries
    return any(
        word.startswith(first) and take_each(others, left[:place] + left[place + 1 :])
        for place, word in enumerate(left)
    )
