"""The services of the compose file are confined, and wait for one another."""

import re
from ipaddress import IPv4Network, ip_address
from typing import Any

import pytest
from ruamel.yaml import YAML

from arena.cli import application
from tests.deploy.tools import DEPLOY, assert_content, needed_files, read


@pytest.fixture(scope="module")
def compose() -> Any:
    return YAML(typ="safe", pure=True).load(read("compose.yaml"))


def test_the_compose_file_follows_the_specification() -> None:
    schema = ("--builtin-schema", "vendor.compose-spec")
    assert_content("check-jsonschema", *schema, DEPLOY / "compose.yaml")


def test_only_nginx_and_the_figures_are_published_and_on_this_machine_only(compose: Any) -> None:
    published = {n: s["ports"] for n, s in compose["services"].items() if "ports" in s}
    assert published == {"nginx": ["127.0.0.1:8080:8080"], "prometheus": ["127.0.0.1:9090:9090"]}


def test_there_are_two_replicas_and_prometheus_reads_each(compose: Any) -> None:
    app = compose["services"]["app"]
    assert app["deploy"]["replicas"] == 2
    (job,) = YAML(typ="safe", pure=True).load(read("prometheus.yml"))["scrape_configs"]
    (found_by,) = job["dns_sd_configs"]
    assert (found_by["names"], found_by["type"]) == (["app"], "A")
    assert found_by["port"] == app["environment"]["ARENA_METRICS_PORT"]


def test_the_worker_runs_a_command_that_there_is_and_only_if_asked_for(compose: Any) -> None:
    worker = compose["services"]["worker"]
    assert worker["profiles"]
    application(["judge", "work"]).parse_args(worker["command"])


def test_every_service_is_confined(compose: Any) -> None:
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert "/tmp" in service["tmpfs"], name
        assert service["cap_drop"] == ["ALL"], name
        assert "cap_add" not in service, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"]), name


def test_every_service_has_bounds_on_memory_processes_and_processors(compose: Any) -> None:
    for name, service in compose["services"].items():
        assert service["pids_limit"] > 0, name
        assert service["cpus"] > 0, name
        assert re.fullmatch(r"\d+[mg]", service["mem_limit"]), name
    assert compose["services"]["app"]["ulimits"]["nofile"] > needed_files()


def test_the_app_runs_as_the_user_who_owns_its_data(compose: Any) -> None:
    user = re.findall(r"^USER (\S+)", read("Dockerfile"), re.MULTILINE)[-1]
    assert compose["services"]["app"]["user"] == user


def test_every_service_waits_until_what_it_needs_is_healthy(compose: Any) -> None:
    services = compose["services"]
    needs = {n: sorted(s.get("depends_on", {})) for n, s in services.items()}
    assert needs == {
        "app": ["database"],
        "worker": ["database"],
        "database": [],
        "nginx": ["app"],
        "prometheus": ["app"],
    }
    for service in services.values():
        for needed in service.get("depends_on", {}).values():
            assert needed["condition"] == "service_healthy"
    assert [n for n, s in services.items() if "healthcheck" not in s] == ["app"]
    assert "HEALTHCHECK" in read("Dockerfile")


def test_the_database_is_out_of_reach_of_nginx_and_of_the_network(compose: Any) -> None:
    services = compose["services"]
    assert services["database"]["networks"] == ["back"]
    assert [*services["nginx"]["networks"]] == ["front"]
    assert compose["networks"]["back"]["internal"] is True


def test_the_app_trusts_the_address_of_nginx_alone_which_nobody_else_can_get(compose: Any) -> None:
    services = compose["services"]
    trusted = services["app"]["environment"]["ARENA_TRUSTED_PROXIES"]
    proxy = ip_address(trusted)
    assert services["nginx"]["networks"]["front"]["ipv4_address"] == trusted
    (front,) = compose["networks"]["front"]["ipam"]["config"]
    assert proxy in IPv4Network(front["subnet"])
    assert proxy not in IPv4Network(front["ip_range"]), "others get theirs from this range"
    assert IPv4Network(front["ip_range"]).subnet_of(IPv4Network(front["subnet"]))
    for name, service in services.items():
        if name != "nginx":
            assert isinstance(service["networks"], list), name
            assert "ARENA_TRUSTED_PROXIES" not in service.get("environment", {}) or name == "app"


def test_every_image_is_pinned_by_digest_or_built_here(compose: Any) -> None:
    for name, service in compose["services"].items():
        pinned = re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", service["image"])
        assert pinned or service["build"]["dockerfile"] == "deploy/Dockerfile", name


def test_what_must_survive_lies_in_named_volumes(compose: Any) -> None:
    assert compose["volumes"].keys() == {"data", "database", "figures"}
    assert "database:/var/lib/postgresql" in compose["services"]["database"]["volumes"]
    volumes = {(v["source"], v["target"]) for v in compose["services"]["app"]["volumes"]}
    assert ("data", "/data") in volumes


def test_no_secret_stands_in_the_compose_file(compose: Any) -> None:
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            if re.search(r"KEY|SECRET|PASSWORD", name):
                assert re.fullmatch(rf"\$\{{{name}:\?.+\}}", value), name
    assert re.findall(r"://\w+:([^@]+)@", read("compose.yaml")) == [
        "${POSTGRES_PASSWORD:?fill in deploy/.env}"
    ]


def test_the_example_of_the_environment_names_all_that_compose_asks_for_and_no_value() -> None:
    wanted = set(re.findall(r"\$\{(\w+)", read("compose.yaml")))
    given = dict(re.findall(r"^(\w+)=(.*)$", read("env.example"), re.MULTILINE))
    assert given == dict.fromkeys(wanted, "")
