"""The alert rules and the Grafana dashboard name metrics, labels and states that exist."""

import json
import re
from collections.abc import Iterator

from redis_kit.core.component import components
from redis_kit.core.metrics.families import Metric
from redis_kit.core.metrics.prometheus import FAILED, UP
from redis_kit.queues.engine.job import QueueCounts
from redis_kit.queues.metrics import STATES
from tests.docs.support.pages import ROOT

FOLDER = ROOT / "docs" / "monitoring"
NAME = re.compile(r"redis_kit_\w+")
SELECTOR = re.compile(r"(redis_kit_\w+)\{([^}]*)\}")
VALUES = {"state": {*QueueCounts._fields, *STATES}, "level": {"error", "warning", "note"}}


def metrics():
    sources = [source for component in components() for source in component.load_metrics()]
    families = [UP, FAILED, *(each for source in sources for each in source.metrics)]
    return {name: metric for metric in families for name in series(metric)}


def series(metric: Metric) -> list[str]:
    histogram = [f"{metric.name}_{part}" for part in ("bucket", "sum", "count")]
    return histogram if metric.kind == "histogram" else [metric.name]


def expressions() -> Iterator[str]:
    text = (FOLDER / "alerts.yml").read_text()
    yield from re.findall(r"expr: (?:>\n)?((?:.|\n)*?)\n {8}(?:for|labels):", text)
    for panel in json.loads((FOLDER / "grafana.json").read_text())["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))


def test_expressions_name_metrics_and_labels_that_exist():
    existing, wrong = metrics(), []
    assert len(list(expressions())) > 30
    for expression in expressions():
        names = NAME.findall(expression)
        assert names, expression
        wrong += [name for name in names if name not in existing]
        for name, selector in SELECTOR.findall(expression):
            for label, _equals, value in re.findall(r'(\w+)(=~|!=|=)"([^"]*)"', selector):
                if label not in ("connection", *existing[name].labels):
                    wrong.append(f"{name} has no label {label}")
                unknown = set(value.split("|")) - VALUES.get(label, {value})
                wrong += [f"{label}={each}" for each in unknown]
    assert not wrong


def test_counters_are_read_by_their_rates():
    counters = {name for name, metric in metrics().items() if metric.kind != "gauge"}
    for expression in expressions():
        for name in counters & set(NAME.findall(expression)):
            assert re.search(rf"(rate|increase)\({name}[{{\[]", expression), expression


def test_queries_of_variables_exist():
    variables = json.loads((FOLDER / "grafana.json").read_text())["templating"]["list"]
    names = [name for variable in variables for name in NAME.findall(variable["query"])]
    assert len(names) == 2
    assert set(names) <= metrics().keys()


def test_alerts_say_what_to_do():
    text = (FOLDER / "alerts.yml").read_text()
    assert text.count("- alert:") == text.count("summary:") == text.count("action:") == text.count("severity:") > 10
