"""The articles of the reading room, as data."""

from typing import NamedTuple


class ArticleText(NamedTuple):
    """An article of the site."""

    slug: str
    title: str
    summary: str
    body: str


ARTICLES = (
    ArticleText(
        "one-builder-at-a-time",
        "One builder at a time",
        "Two people ask for the same report. Only one of them should pay for it.",
        """\
Some work must not run twice at once: the nightly bills, the rebuilding of an index, a report that keeps the database \
busy for a minute. Inside one process, a mutex would do. A site has many processes on many machines, so the lock must \
be in a place that all of them can see.

A lock in Redis is a name. The first process that stores the name holds the lock. The others see the holder, and \
either wait or give up with a clear answer. The name has a time limit, because a process that was killed can't release \
anything. After thirty seconds the lock is free again.

The report of this site is built behind a lock. Ask for it in two windows: the second window names the builder.""",
    ),
    ArticleText(
        "the-fence-behind-the-lock",
        "The fence behind the lock",
        "A lock with a time limit can be lost unnoticed. A number that only grows makes that harmless.",
        """\
A process acquires a lock for thirty seconds, and then stops for forty: a full disk, a long garbage collection, a \
laptop that was closed. When it continues, it still believes that it holds the lock. Another process has held the lock \
for ten seconds.

A lock with a time limit can't prevent this. A lock without a time limit is never released by a process that died. A \
number helps: each holder gets a higher number than all holders before. The holder sends the number with each write, \
and the database refuses a number that is lower than the last.

The late process writes, and is refused. Nothing was overwritten, and no clock had to be trusted.""",
    ),
    ArticleText(
        "five-votes-a-minute",
        "Five votes a minute",
        "How a limit stays exact when a hundred requests arrive at the same moment.",
        """\
Read the counter, compare it, write it back: these are three steps, and a hundred requests fit between any two of \
them. A limit that works like this slows down patient clients and lets fast ones through.

The server should decide instead. A small script reads what was used, the server's clock and the limit, and answers \
yes or no. Nothing else runs in between. A refused vote is not counted, so a reader who keeps pressing the button does \
not wait longer.

A good refusal also says when to try again. Vote for this article six times in a row, and read the answer.""",
    ),
    ArticleText(
        "a-letter-that-is-not-lost",
        "A letter that is not lost",
        "What happens to a job when the process that runs it is killed.",
        """\
The simplest queue is a list: add at one end, remove at the other. It works until a worker removes a job and dies. The \
job is in no list any more, and nobody will run it.

A safe queue does not remove the job. In one step it gives the job to a worker and stores the worker's name. The job \
is removed when the worker reports that it is done. If a worker sends no heartbeats, its jobs return to the queue.

The price is that a job may run twice, if a worker dies after the work and before the report. So a job should be safe \
to repeat. Have this article sent to you: a job delivers the letter.""",
    ),
    ArticleText(
        "in-ten-seconds-not-eleven",
        "In ten seconds, not in eleven",
        "How to wait for the next job without asking for it again and again.",
        """\
A reminder is a job that must not run before its time. A worker could look every second for reminders that are due. \
Then each reminder is up to a second late, and an idle worker sends 86,400 requests a day.

It is better to sort the reminders by their time. Then the earliest is always first, and the worker sleeps until that \
reminder is due. If an earlier reminder arrives, it wakes the worker. An idle worker sends no requests, and a reminder \
is late by milliseconds.

Ask for a reminder of this article. The page of your letters shows when it was due and when it arrived.""",
    ),
    ArticleText(
        "how-many-not-who",
        "How many, and not who",
        "Counting a million visitors in twelve kilobytes, without storing any of them.",
        """\
To count the different visitors of a page, a site could store a list of them. The list grows with every visitor, and \
it is a list of people that somebody may read one day.

There is another way. Toss a coin for each visitor until it shows heads, and remember only the longest row of tails. A \
thousand visitors give a longer row than ten. The same visitor always gets the same coins, so a second visit changes \
nothing. With some thousand of these memories side by side, the average is right to within one per cent. No visitor \
can be read back from it.

The figures above the text are counted like this. Open this page in another browser: the number of visitors grows by \
one. Reload the page, and only the views grow.""",
    ),
    ArticleText(
        "forty-six-bytes-for-a-year",
        "Forty-six bytes for a year",
        "A calendar of all the days on which a reader was here, smaller than its description.",
        """\
A year has 366 days at most. On each of them a reader was here or was not. That is 366 bits, or forty-six bytes. The \
calendars of a million readers fit on a cheap telephone.

The day of the year is the position of the bit. To check in is to set one bit. To draw the calendar of a month is to \
read thirty-one bits at once. A streak is a row of set bits that ends today. It may begin in the year before.

Check in on the page of that name. Then check in again: a day has only one bit.""",
    ),
    ArticleText(
        "when-the-server-is-away",
        "When the server does not answer",
        "Each part of a site should know in advance what it does without the others.",
        """\
A server that has stopped answers nothing, and a program without a time limit waits for it. The page waits for the \
program, and the reader waits for the page. The outage of a counter has become the outage of the site.

So the wait has a limit, a quarter of a second. After some failures in a row the program does not wait at all. Then \
each part needs its own answer. A throttle allows the call: one vote too many is better than a closed site. A page \
view is not counted. A lock raises an error, since nobody can say whether it is free.

These answers are settings. Choose them on a quiet day.""",
    ),
)
