"""A holder that slept through the end of its lease: the database refuses what it writes afterwards."""

import os
import signal

from tests.fixtures.servers import wait_for

SITE = """
import signal, django
settings.INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "tests.app"]
settings.AUTH_USER_MODEL = "app.User"
settings.DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[3]}}
django.setup()
from django.db import connection
from tests.app.models import Account, User
"""
LATE = """
with connection.schema_editor() as editor:
    editor.create_model(User)
    editor.create_model(Account)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
lease = Lock("a", timeout=1).acquire()
account = Account(name="a", balance=1)
account.save_fenced(lease)
rows = fenced(Account.objects.filter(name="a"), lease)
print(lease.held, flush=True)
signal.sigwait({signal.SIGUSR1})
account.balance = 2
for write in (lambda: rows.update(balance=2), lambda: account.save_fenced(lease), rows.delete):
    try:
        write()
        print("written")
    except StaleFence:
        print("refused")
print(lease.held, Account.objects.get().balance)
"""
NEWER = """
with Lock("a") as lease:
    print(fenced(Account.objects.filter(name="a"), lease).update(balance=5))
"""


def test_holder_that_was_stopped_beyond_its_lease_writes_nothing(kit, program, tmp_path):
    late = program(SITE + LATE, tmp_path / "db.sqlite3")
    assert late.stdout.readline() == "True\n"
    os.kill(late.pid, signal.SIGSTOP)
    wait_for(lambda: late.state == "T")
    newer, _ = program(SITE + NEWER, tmp_path / "db.sqlite3").communicate(timeout=60)
    assert newer == "1\n"
    os.kill(late.pid, signal.SIGUSR1)
    os.kill(late.pid, signal.SIGCONT)
    output, _ = late.communicate(timeout=60)
    assert output.split() == ["refused", "refused", "refused", "False", "5"]
