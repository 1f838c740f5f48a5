"""Prometheus metrics of one process and of several."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.sample_endpoints import client, sample_app
from tests.support.server_process import PLAIN, TOKEN, serving

from carrel.server.http.metrics import Metrics

pytestmark = pytest.mark.anyio


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Every sample by its name and the values of its sorted labels."""
    return {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_requests_are_counted_by_template_method_and_class_of_status() -> None:
    async with client() as http:
        for path in ("/v1/echo/a", "/v1/echo/b", "/v1/echo/c?x=1", "/v1/nothing"):
            await http.get(path)
        await http.put("/v1/notes/secret-name.md", json={"text": "x"})
        answer = await http.get("/metrics")
        text = answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=")
    counted = samples(text)
    name = "carrel_request_seconds_count"
    assert counted[name, "GET", "/v1/echo/{name}", "2xx"] == 2
    assert counted[name, "GET", "/v1/echo/{name}", "4xx"] == 1
    assert counted[name, "PUT", "/v1/notes/{path...}", "2xx"] == 1
    assert counted[name, "*", "(unknown)", "4xx"] == 1
    assert counted[("carrel_requests_in_flight",)] == 1
    assert "secret-name" not in text


async def test_durations_are_counted_in_cumulative_buckets() -> None:
    metrics = Metrics()
    meter = metrics.add_route("/x", "GET")
    for seconds in (0.0001, 0.0005, 0.003, 0.003, 7.0, 100.0):
        meter.observe(200, seconds)
    for _ in range(2):
        counted = samples(metrics.render().decode())
        buckets = {
            key[1]: value for key, value in counted.items() if key[0].endswith("seconds_bucket")
        }
        assert buckets["0.0005"] == 2
        assert buckets["0.005"] == 4
        assert buckets["5.0"] == 4
        assert buckets["10.0"] == 5
        assert buckets["+Inf"] == 6
        assert counted["carrel_request_seconds_sum", "GET", "/x", "2xx"] == pytest.approx(107.0066)
        assert counted["carrel_request_seconds_count", "GET", "/x", "2xx"] == 6


async def test_observed_values_are_read_at_each_scrape() -> None:
    metrics, counters = Metrics(), {"commits": 3.0, "depth": 9.0}
    metrics.observe("carrel_commits_total", "Commits.", lambda: counters["commits"])
    metrics.observe("carrel_commit_queue_depth", "Waiting.", lambda: counters["depth"])
    async with client(sample_app(metrics=metrics)) as http:
        first = samples((await http.get("/metrics")).text)
        counters.update(commits=5.0, depth=2.0)
        second = samples((await http.get("/metrics")).text)
    assert (first[("carrel_commits_total",)], first[("carrel_commit_queue_depth",)]) == (3, 9)
    assert (second[("carrel_commits_total",)], second[("carrel_commit_queue_depth",)]) == (5, 2)


WORKER = """
import asyncio, sys
from carrel.server.http.metrics import Metrics

async def work(requests, commits):
    metrics = Metrics(sys.argv[1])
    meter = metrics.add_route("/x", "GET")
    metrics.observe("carrel_commits_total", "Commits.", lambda: commits)
    metrics.observe("carrel_commit_queue_depth", "Waiting.", lambda: commits)
    for _ in range(requests):
        metrics.in_flight += 1
        meter.observe(200, 0.002)
        metrics.request_finished()
    flushed = asyncio.get_running_loop().create_future()
    later = metrics._flush_timer.when()
    asyncio.get_running_loop().call_at(later, flushed.set_result, None)
    await flushed
    print("flushed", flush=True)
    sys.stdin.readline()
    print(metrics.render().decode())

asyncio.run(work(int(sys.argv[2]), float(sys.argv[3])))
"""


def test_any_worker_reports_the_sum_over_all_workers(tmp_path: File) -> None:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tmp_path), str(requests), str(commits)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for requests, commits in ((2, 5), (3, 7))
    ]
    for worker in workers:
        assert worker.stdout
        assert worker.stdout.readline() == "flushed\n"
    # The first worker renders while the other is alive and has never rendered.
    text, _ = workers[0].communicate("now\n", timeout=60)
    workers[1].communicate("now\n", timeout=60)
    counted = samples(text)
    assert counted["carrel_request_seconds_count", "GET", "/x", "2xx"] == 5
    assert counted[("carrel_commits_total",)] == 12
    assert counted[("carrel_commit_queue_depth",)] == 12
    assert counted[("carrel_requests_in_flight",)] == 0


def test_counting_a_request_is_faster_than_the_librarys_histogram() -> None:
    """Both are timed in one process, so that the machine's speed does not matter."""
    script = """
import json, timeit
from carrel.server.http.metrics import Metrics
from prometheus_client import CollectorRegistry, Histogram
meter = Metrics().add_route("/x", "GET")
own = Histogram("h", "h", ["a"], registry=CollectorRegistry()).labels("a").observe
best = lambda f: min(timeit.repeat(f, number=20000, repeat=5))
print(json.dumps([best(lambda: meter.observe(200, 0.002)), best(lambda: own(0.002))]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    ours, theirs = json.loads(done.stdout)
    assert ours < theirs


PLATFORM, READER = "the platform's own token", "the token of the metrics"


@pytest.mark.parametrize(
    ("settings", "accepted"),
    [
        ({}, {None, TOKEN, PLATFORM, READER}),
        ({"platform_token": PLATFORM}, {PLATFORM}),
        ({"metrics_token": READER}, {READER}),
        ({"platform_token": PLATFORM, "metrics_token": READER}, {READER}),
    ],
    ids=["one tenant", "several tenants", "a token", "both tokens"],
)
def test_metrics_of_a_server_for_several_tenants_need_a_token_that_no_tenant_has(
    tmp_path: File, settings: dict[str, Any], accepted: set[str | None]
) -> None:
    with (
        serving(tmp_path, **settings) as server,
        httpx.Client(base_url=server.url, verify=PLAIN, timeout=60) as http,
    ):
        for token in (None, TOKEN, PLATFORM, READER):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            answer = http.get("/metrics", headers=headers)
            assert answer.status_code == (200 if token in accepted else 401), token
            assert ("carrel_commits_total" in answer.text) is (token in accepted)


async def test_guesses_of_the_metrics_token_are_limited() -> None:
    app = sample_app(metrics=Metrics(token=READER))
    transport = httpx.ASGITransport(app=app, client=("192.0.2.1", 4000))
    async with httpx.AsyncClient(transport=transport, base_url="http://carrel") as http:
        statuses = [
            (await http.get("/metrics", headers={"Authorization": f"Bearer {guess}"})).status_code
            for guess in range(40)
        ]
    assert statuses[0] == 401
    assert statuses[-1] == 429
