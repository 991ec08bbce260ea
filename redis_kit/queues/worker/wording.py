"""Numbers in what a worker logs."""


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number of things in words: ``1 job``, ``2 jobs``, ``2 processes``."""
    return f"1 {one}" if number == 1 else f"{number} {several or one + 's'}"


def running(number: int) -> str:
    """Return how many jobs run, in words."""
    return f"{counted(number, 'job')} {'is' if number == 1 else 'are'} running" if number else "no job is running"
