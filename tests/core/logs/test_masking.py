"""Values that are hidden, those that are not, and time that does not grow with what an attacker sends."""

import time

import pytest

from redis_kit.core.logs.masking import is_hidden, is_secret, without_secrets

SECRETS = """
    api_key apikey apiKey API_KEY x-api-key stripe_key STRIPE_KEY_LIVE stripeKeyLive key secret_key
    SECRET_KEY_BASE private_key privateKey ssh-key primaryKey accessKeyId aws_secret_access_key
    SecretAccessKey session_key api_keys cache_key auth_token authToken accessToken access_tokens
    refresh_token id_token csrfmiddlewaretoken token tokens2 SessionToken password PASSWORD PGPASSWORD
    old_passwords user.password passwd passphrase db_pwd Authorization HTTP_AUTHORIZATION Proxy-Authorization
    X-AUTHORIZATION author_token authorKey sessionid session JSESSIONID cookie Set-Cookie cookies signature
    x_signature jwt credentials client_secret secrets
"""


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password=hunter2 next", "password=*** next"),
        ("error: password=hunter2", "error: password=***"),
        ("{'password': 'a b', 'n': 1}", "{'password': '***', 'n': 1}"),
        ('{\\"token\\": \\"a b\\"}', '{\\"token\\": \\"***\\"}'),
        ("Authorization: Digest a=1, b=2\nHost: x", "Authorization: ***\nHost: x"),
        ("[(b'cookie', b'a=b; c=d'), (b'host', b'x')]", "[(b'cookie', b'***'), (b'host', b'x')]"),
        ("redis://ann:p@ss@host:1", "redis://ann:***@host:1"),
        ("https://abc@host/x", "https://***@host/x"),
        ("sent Bearer abcdefg1", "sent Bearer ***"),
        ("http://host:8000/a?email=x@y", "http://host:8000/a?email=x@y"),
        ("KeyError: 'abc'", "KeyError: 'abc'"),
        ("basic authentication, order=7", "basic authentication, order=7"),
        ("author=Ann", "author=Ann"),
        ("{'password': ['hunter2', 'b'], 'n': 1}", "{'password': ***, 'n': 1}"),
        ("{'password': ('hunter2', {'a': [1]}), 'n': 1}", "{'password': ***, 'n': 1}"),
        ("{'password': {'new': 'a]b}', 'old': \"it's\"}, 'n': 1}", "{'password': ***, 'n': 1}"),
        ('{"password": ["a\\"]b", "c"], "n": 1}', '{"password": ***, "n": 1}'),
        ('{\\"password\\": [\\"a]b\\", \\"c\\"], \\"n\\": 1}', '{\\"password\\": ***, \\"n\\": 1}'),
        ("{'password': ['hunter2', 'hun", "{'password': ***"),
        ("<QueryDict: {'user': ['ann'], 'password': ['a', 'b']}>", "<QueryDict: {'user': ['ann'], 'password': ***}>"),
        ("password=<QueryDict: {'a': ['b > c']}> next", "password=*** next"),
        ("{'token': UUID('12'), 'price': Decimal('1')}", "{'token': ***, 'price': Decimal('1')}"),
        ("[('Authorization', ['Bearer x']), ('Host', 'x')]", "[('Authorization', ***), ('Host', 'x')]"),
        ("{'Authorization': ['Bearer x'], 'Host': 'x'}", "{'Authorization': ***, 'Host': 'x'}"),
        ("('token', 12345, 'x')", "('token', ***, 'x')"),
        ("psql --password hunter2 --host db", "psql --password *** --host db"),
        ("psql --password --host db", "psql --password --host db"),
        ("['psql', '--password', 'hunter2', 'db']", "['psql', '--password', '***', 'db']"),
        ("<user>ann</user><password>a b</password>", "<user>ann</user><password>***</password>"),
        ("<ns:password kind='x'><a>b</a></ns:password>", "<ns:password kind='x'>***</ns:password>"),
        ("<password>hunter2", "<password>***"),
        ("<login user='ann' password='a b'>text</login>", "<login user='ann' password='***'>text</login>"),
        ("usage: <file> of <user>", "usage: <file> of <user>"),
        ("jwt=abc&x=1", "jwt=***&x=1"),
        ("DETAIL: Key (password)=(a (b) c) already exists", "DETAIL: Key (password)=*** already exists"),
        ("Key (email, api_key)=(a@b, c) exists", "Key (email, api_key)=*** exists"),
        ("Key (email)=(a@b) exists", "Key (email)=(a@b) exists"),
        ("os.environ['PASSWORD'] = 'a b'", "os.environ['PASSWORD'] = '***'"),
        ("if password == 'a b':", "if password == '***':"),
    ],
)
def test_values_of_secret_names_are_hidden(text, masked):
    assert without_secrets(text) == masked


@pytest.mark.parametrize("hides", [is_secret, is_hidden])
@pytest.mark.parametrize("name", SECRETS.split())
def test_name_suggests_a_secret(name, hides):
    assert hides(name)
    assert without_secrets(f"a {name}=hunter2 b", hides) in (f"a {name}=*** b", f"a {name}=***")  # a header has many


@pytest.mark.parametrize(
    "text",
    [
        "Unauthorized: /api/orders/17/",
        "KeyConflict: The key 'rk:{locks:a}:holder' is a string in place of a hash",
        "redis_kit.core.errors.KeyConflict: The key 'x' is wrong",
        "ForeignKeyViolation: insert or update",
        "KeyError: 'abc'",
        "author=Ann, authors: 3, authority=x, authorName=Ann, AUTHOR=Ann, post.author=Ann, authorized=True",
        "monkeys=5, turkey: TR, hotkey=x, keywords=a, keyboard=de",
        "passengers=4, compass=north, passed=5, passing: yes, bypass=1",
        "sort_key=name, sortKey=name, table.sort_key=name, partition_key=7",
        "tokens: 512 used, max_tokens=4, total_tokens: 9, keys=5, sessions=8",
        "capital=Rome, rapid=1",
    ],
)
def test_harmless_name_hides_nothing(text):
    assert without_secrets(text) == text
    assert without_secrets(text, is_hidden) == text


def test_filter_of_django_hides_more():
    assert without_secrets("http_auth=x, order=7", is_hidden) == "http_auth=***, order=7"


@pytest.mark.parametrize(
    "text",
    [
        "key",
        "key ",
        "a='",
        "://",
        "://a:",
        "key:",
        'key=\\"',
        "\\",
        "token ",
        "a.b-",
        "'",
        "password=[",
        "password={'",
        'key=(\\"',
        "key=[\\",
        "<key>",
        "--key ",
        "(key)=(",
        "<key a=b ",
        "key=[]",
        "('key', ",
    ],
)
def test_long_text_takes_no_longer_than_its_length(text):
    start = time.perf_counter()
    without_secrets(text * 20_000)
    assert time.perf_counter() - start < 5  # with steps back it takes minutes
