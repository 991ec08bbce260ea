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
Some work must not be done twice at once: the nightly bill run, the rebuilding of an index, a report that keeps \
the database busy for a minute. Inside one process a mutex would do. A site has many processes, on many machines, \
and they have nothing in common but the servers that they talk to.

So the lock goes where all of them can see it. Whoever puts a name into Redis first has it; the others see who \
that was, and wait, or go away with a polite answer. The name comes with a time limit, because a process that was \
killed cannot give anything back. After thirty seconds the lock is free again, whatever happened to its holder.

The report of this site is built behind such a lock. Ask for it in two windows: the second one tells you who is at \
work.""",
    ),
    ArticleText(
        "the-fence-behind-the-lock",
        "The fence behind the lock",
        "A lock with a time limit can be lost without noticing. A number that only grows settles it.",
        """\
A process takes a lock for thirty seconds and is then put to sleep for forty: a full disk, a long collection of \
garbage, a laptop that was closed. When it wakes up it still believes that the lock is its own. Somebody else has \
had it for ten seconds.

No lock with a time limit can prevent that, and a lock without one is never given back by the dead. What helps is \
a number. Each time the lock is taken its holder gets one that is higher than all before it. The holder shows the \
number when it writes, and whoever stores the data refuses a number lower than the last one seen.

The sleeper wakes, writes, and is turned away at the fence. Nothing was overwritten, and nobody had to trust a \
clock.""",
    ),
    ArticleText(
        "five-votes-a-minute",
        "Five votes a minute",
        "How a limit can be exact although a hundred requests arrive at the same moment.",
        """\
Read the counter, compare it, write it back: three steps, and a hundred requests fit between any two of them. \
Limits that work like this hold back the patient and let the hasty through.

The remedy is to let the server decide. One small script looks at what was used, at its own clock and at the \
limit, and answers yes or no; nothing else runs in between. What it refuses is not counted, so that a reader who \
keeps pressing the button is not pushed further and further away from the next vote.

A good refusal also says when to come back. Vote for this article six times in a row, and read the answer.""",
    ),
    ArticleText(
        "a-letter-that-is-not-lost",
        "A letter that is not lost",
        "What happens to a job when the process that was doing it is killed.",
        """\
The simplest queue is a list: put in at one end, take out at the other. It works until the day on which a worker \
takes a job out and dies. The job was in no list any more, and nobody will ever do it.

A careful queue never takes a job out. It hands the job over and writes down to whom, in the same step. Only when \
the worker says that it has finished is the job crossed out. A worker that has fallen silent is found missing, and \
what it was doing goes back to the others.

The price is that a job may run twice, when a worker dies between the work and the word. So a job should bear \
being repeated. Have this article sent to you: the letter is written by such a job.""",
    ),
    ArticleText(
        "in-ten-seconds-not-eleven",
        "In ten seconds, not in eleven",
        "Waiting for the next thing to do, without asking all the time whether it is there.",
        """\
A reminder is a job with a time before which it must not run. One could look every second for those whose time has \
come. Then every reminder is late by up to a second, and an idle worker asks eighty-six thousand questions a day.

Sort the reminders by their time, and the earliest is always at hand. The worker knows how long it may sleep: \
until that one is due. Should an earlier one arrive in the meantime, it is woken up. It asks nothing while there \
is nothing to do, and it is late by milliseconds.

Let yourself be reminded of this article. The page of your letters shows when it was due and when it came.""",
    ),
    ArticleText(
        "how-many-not-who",
        "How many, and not who",
        "Counting a million different people in twelve kilobytes, without knowing any of them.",
        """\
To know how many different people read a page one could keep a list of them. The list grows with every reader, and \
it is a list of people, which somebody may want to read one day.

Toss a coin for each reader until it shows heads, and remember only the longest row of tails. A thousand readers \
give a longer row than ten. With the same coins for the same reader a second visit changes nothing. Use some \
thousand such memories side by side, average them with care, and the number is right to within one per cent. \
Nobody can be read back from it.

The figures above the text are counted like that. Open this page in another browser: the visitors go up by one, \
and after a reload only the views do.""",
    ),
    ArticleText(
        "forty-six-bytes-for-a-year",
        "Forty-six bytes for a year",
        "A calendar of all the days on which somebody was here, smaller than its own description.",
        """\
A year has 366 days at most, and on each of them a reader was here or was not. That is 366 bits, or forty-six \
bytes. A million readers fit on a cheap telephone.

The day of the year is the place of the bit. To check in is to set one bit; to draw the calendar of a month is to \
read thirty-one of them in one piece. A streak is a row of ones that ends today, and it may begin before New Year, \
where one row of bits ends and another begins.

Check in on the page of that name. Then do it again: a day has only one bit.""",
    ),
    ArticleText(
        "when-the-server-is-away",
        "When the server is away",
        "Every part of a site should know beforehand what it will do without the others.",
        """\
A server that has stopped answers nothing, and a program that has not been told otherwise waits for it. The page \
waits for the program, and the reader for the page. What was an outage of a counter has become an outage of the \
site.

So there is a limit to the waiting, a quarter of a second, and after some failures in a row not even that is \
spent. Then each part has to decide by itself. A throttle lets people in: better a vote too many than a closed \
door. A page view is not counted. A lock is different, since nobody can say who holds it, and so an error is the \
honest answer.

Those decisions are settings, and they are made on a quiet day.""",
    ),
)
