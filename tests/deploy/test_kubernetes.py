"""The manifests are valid, confined, and say the same as the arena."""

from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

import pytest
from ruamel.yaml import YAML

from arena.cli import application
from arena.logs import Metrics
from arena.settings import Settings
from rating import __version__
from tests.deploy.tools import DEPLOY, assert_content, read
from tests.serving import Served

FILES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
OBJECTS = [thing for file in FILES for thing in YAML(typ="safe", pure=True).load_all(file)]


def one(kind: str, name: str = "arena") -> Any:
    return next(o for o in OBJECTS if (o["kind"], o["metadata"]["name"]) == (kind, name))


def pods() -> Iterator[Any]:
    return (o["spec"]["template"] for o in OBJECTS if o["kind"] in ("Deployment", "Job"))


def containers() -> Iterator[Any]:
    return (container for pod in pods() for container in pod["spec"]["containers"])


def test_every_manifest_is_valid_to_the_letter() -> None:
    names = [file.stem for file in FILES]
    assert names == ["arena", "judge", "migrate", "settings"]
    assert_content("kubernetes-validate", "--strict", *FILES)


@pytest.mark.parametrize(
    "kind",
    [
        "Deployment", "Service", "Ingress", "HorizontalPodAutoscaler", "PodDisruptionBudget",
        "NetworkPolicy", "ServiceAccount",
    ],
)  # fmt: skip
def test_nothing_is_missing(kind: str) -> None:
    assert one(kind)["metadata"]["labels"]["app.kubernetes.io/name"] == "arena"


def test_every_pod_is_confined() -> None:
    for pod in pods():
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["serviceAccountName"] == "arena"
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        user = f"{spec['securityContext']['runAsUser']}:{spec['securityContext']['runAsGroup']}"
        assert f"\nUSER {user}\n" in read("Dockerfile")
    for container in containers():
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_secrets_come_by_reference_alone() -> None:
    assert "Secret" not in {thing["kind"] for thing in OBJECTS}
    for container in containers():
        assert {"secretRef": {"name": "arena"}} in container["envFrom"]
        assert "env" not in container
    secret = {"ARENA_SECRET_KEY", "ARENA_DATABASE"}
    assert not secret & one("ConfigMap", "arena-settings")["data"].keys()


def test_every_image_is_the_one_that_is_built_here() -> None:
    images = {container["image"] for container in containers()}
    assert images == {f"registry.example.org/arena:{__version__}"}
    assert "  # yours: built from ../Dockerfile" in read("kubernetes/arena.yaml")


def test_the_pods_trust_one_network_and_not_all_private_ones() -> None:
    trusted = one("ConfigMap", "arena-settings")["data"]["ARENA_TRUSTED_PROXIES"]
    assert ip_network(trusted).prefixlen >= 16
    assert f"ARENA_TRUSTED_PROXIES: {trusted}  # yours: " in read("kubernetes/settings.yaml")


def test_every_job_runs_a_command_that_there_is() -> None:
    for container in containers():
        words = [word for word in container["args"] if not word.startswith("-")]
        application(words).parse_args([*container["args"]])


def test_everybody_who_selects_the_replicas_selects_them() -> None:
    deployment = one("Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    (spread,) = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
    for selector in (
        deployment["spec"]["selector"]["matchLabels"],
        one("Service")["spec"]["selector"],
        one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        spread["labelSelector"]["matchLabels"],
    ):
        assert selector == labels
    everybody = one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"]
    for pod in pods():
        assert everybody.items() <= pod["metadata"]["labels"].items()


def test_ports_and_probes_are_the_arena_s(quick: Served) -> None:
    (container,) = one("Deployment")["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    settings = one("ConfigMap", "arena-settings")["data"]
    assert ports == {"http": Settings().port, "metrics": int(settings["ARENA_METRICS_PORT"])}
    with quick.visitor() as probe:
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            asked = container[name]["httpGet"]
            assert ports[asked["port"]] == ports["http"]
            assert probe.get(asked["path"]).status_code == 200


def test_a_replica_may_let_its_battles_end_before_it_is_killed() -> None:
    spec = one("Deployment")["spec"]["template"]["spec"]
    pause = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    grace = float(one("ConfigMap", "arena-settings")["data"]["ARENA_SHUTDOWN_GRACE_S"])
    assert spec["terminationGracePeriodSeconds"] >= pause + grace + 5


def test_replicas_are_scaled_by_a_figure_that_the_arena_serves() -> None:
    scaler = one("HorizontalPodAutoscaler")["spec"]
    (metric,) = scaler["metrics"]
    names = {family.name for family in Metrics()._registry.collect()}
    assert metric["pods"]["metric"]["name"] in names
    assert int(metric["pods"]["target"]["averageValue"]) < Settings().running_battles
    assert scaler["minReplicas"] > one("PodDisruptionBudget")["spec"]["minAvailable"]
    assert "replicas" not in one("Deployment")["spec"], "the scaler alone decides"


def test_a_planted_fault_does_not_pass(tmp_path: Any) -> None:
    broken = tmp_path / "broken.yaml"
    text = (DEPLOY / "kubernetes" / "arena.yaml").read_text("utf-8")
    broken.write_text(text.replace("minAvailable:", "minAvailables:"), encoding="utf-8")
    with pytest.raises(AssertionError):
        assert_content("kubernetes-validate", "--strict", broken)
