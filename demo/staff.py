"""The staff of the reading room: holders of locks and slots, and jobs in several queues, for the dashboard to show."""

import random
import threading
from collections.abc import Callable

from demo.articles import ARTICLES
from demo.seed import READERS
from example_project.reading import tasks
from redis_kit.core.errors import RedisKitError
from redis_kit.locks import Lock, Semaphore
from redis_kit.queues import Queue

DESKS = 3
NEWSLETTERS = 8
JOB_INTERVAL = 8.0  # seconds
CATALOGUE_TURN = 40.0  # seconds for which the catalogue is held
DESK_TURN = 25.0
END = 1.0  # seconds that the threads have to release what they hold


def seed_queues() -> None:
    """Pause the queue of newsletters with jobs in it, and enqueue orders that will be dead jobs."""
    newsletters = Queue(tasks.send_newsletter.queue_name)
    newsletters.pause()
    for reader in READERS[:NEWSLETTERS]:
        tasks.send_newsletter.enqueue(reader)
    for text in ARTICLES[:3]:
        tasks.order_book.enqueue(text.title)
    tasks.post_parcel.enqueue(ARTICLES[0].title)
    tasks.make_book(text.title for text in ARTICLES)


class Staff:
    """Threads that hold locks while others wait for them, and one that enqueues jobs."""

    def __init__(self) -> None:
        self.over = threading.Event()
        work: list[tuple[str, Callable[[], None]]] = [("clerk", self._enqueue)]
        work += [(f"librarian {number}", self._edit_catalogue) for number in (1, 2, 3)]
        work += [(f"copyist {number}", self._use_desk) for number in range(1, DESKS + 3)]
        self.threads = [threading.Thread(target=self._until_over, args=[part], name=name) for name, part in work]

    def start(self) -> None:
        """Start the threads."""
        for thread in self.threads:
            thread.daemon = True
            thread.start()

    def stop(self) -> None:
        """End the threads, and release what they hold."""
        self.over.set()
        for thread in self.threads:
            thread.join(END)

    def _until_over(self, part: Callable[[], None]) -> None:
        while not self.over.is_set():
            try:
                part()
            except RedisKitError:
                self.over.wait(1)  # the server is unavailable, or an operator has released the lock

    def _edit_catalogue(self) -> None:
        with Lock("catalogue", timeout=60):
            self.over.wait(CATALOGUE_TURN)

    def _use_desk(self) -> None:
        with Semaphore("desks", DESKS, timeout=60):
            self.over.wait(random.uniform(DESK_TURN / 2, DESK_TURN))

    def _enqueue(self) -> None:
        title = random.choice(ARTICLES).title
        tasks.bind_volume.enqueue(title)
        if random.random() < 0.5:
            tasks.post_parcel.enqueue(title)
        if random.random() < 0.2:
            tasks.make_book(text.title for text in random.sample(ARTICLES, 5))
        self.over.wait(JOB_INTERVAL)
