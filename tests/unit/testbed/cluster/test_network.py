from __future__ import annotations

import json
from ipaddress import IPv4Network
from itertools import combinations

import pytest

from testbed.cluster.errors import RealNodeUnavailableError
from testbed.cluster.network import POOL, NodeNetwork, free_block, routed_networks

NETWORK = NodeNetwork(block=IPv4Network("10.66.0.0/16"), link="link")


def test_the_first_block_is_taken_on_a_machine_without_routes() -> None:
    assert free_block([]) == IPv4Network("10.64.0.0/16")


def test_a_block_that_overlaps_any_route_is_passed_over() -> None:
    taken = [IPv4Network("10.64.7.0/24"), IPv4Network("10.65.0.0/16"), IPv4Network("192.168.0.0/16")]
    assert free_block(taken) == IPv4Network("10.66.0.0/16")


def test_a_machine_with_routes_everywhere_can_have_no_node() -> None:
    with pytest.raises(RealNodeUnavailableError, match=r"every /16 of 10\.64\.0\.0/10"):
        free_block([POOL])


def test_the_default_route_takes_no_block() -> None:
    routes = [{"dst": "default"}, {"dst": "10.64.0.2"}, {"dst": "172.17.0.0/16"}]
    assert routed_networks(json.dumps(routes)) == [IPv4Network("10.64.0.2/32"), IPv4Network("172.17.0.0/16")]


def test_link_services_and_pods_do_not_overlap() -> None:
    link = IPv4Network(f"{NETWORK.host}/30", strict=False)
    assert not any(a.overlaps(b) for a, b in combinations((link, NETWORK.services, NETWORK.pods), 2))


def test_all_addresses_are_inside_the_block() -> None:
    assert all(part.subnet_of(NETWORK.block) for part in (NETWORK.services, NETWORK.pods))


def test_both_ends_of_the_link_are_in_one_subnet() -> None:
    assert NETWORK.node in IPv4Network(f"{NETWORK.host}/30", strict=False)
