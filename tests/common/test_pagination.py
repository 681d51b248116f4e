"""Cursor paging: every row once, both ways, whatever the order, also while rows come and go."""

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from catalog.models import Gpu
from common.pagination import Order, in_order, paginate

FEW_VALUES = st.lists(st.one_of(st.none(), st.integers(min_value=1, max_value=4)), max_size=12)


def save_gpus(watts):
    """Store a GPU per value; ties and empty values are the point."""
    Gpu.objects.bulk_create(
        Gpu(
            slug=f"gpu-{number}",
            name=f"GPU {number}",
            label=f"G{number}",
            vendor="ACME",
            architecture="A",
            form_factor="PCIe",
            memory_gb=Decimal(80),
            position=number,
            tdp_w=watt,
        )
        for number, watt in enumerate(watts)
    )


def page(order, *, limit, url="/list/"):
    request = Request(APIRequestFactory().get(url))
    return paginate(
        Gpu.objects.all(), request=request, order=order, limit=limit, cursor=request.query_params.get("cursor")
    )


def walk(order, *, limit, forward=True, url="/list/"):
    """Return every row reached from `url`, in the order of the list."""
    rows: list[Gpu] = []
    while url:
        part = page(order, limit=limit, url=url)
        rows = [*rows, *part.rows] if forward else [*part.rows, *rows]
        url = part.next_url if forward else part.previous_url
    return rows


class WalkingBothWays(TestCase):
    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
    @given(watts=FEW_VALUES, limit=st.integers(min_value=1, max_value=5), descending=st.booleans())
    def test_pages_hold_every_row_once_in_order(self, watts, limit, descending):
        save_gpus(watts)
        order = Order(column="tdp_w", is_nullable=True, is_descending=descending)
        expected = list(in_order(Gpu.objects.all(), order))
        assert walk(order, limit=limit) == expected
        if len(expected) > limit:
            second = page(order, limit=limit).next_url
            last = page(order, limit=limit, url=second)
            back = walk(order, limit=limit, forward=False, url=last.previous_url)
            assert back == expected[:limit]


@pytest.mark.django_db
@pytest.mark.parametrize("descending", [False, True])
def test_empty_values_come_last_both_ways(descending):
    save_gpus([None, 300, None, 700])
    rows = walk(Order(column="tdp_w", is_nullable=True, is_descending=descending), limit=1)
    assert [row.tdp_w for row in rows] == ([700, 300] if descending else [300, 700]) + [None, None]


@pytest.mark.django_db
def test_a_row_that_comes_or_goes_moves_no_other():
    save_gpus([100, 200, 300, 400, 500])
    order = Order(column="tdp_w", is_nullable=True)
    first = page(order, limit=2)
    Gpu.objects.filter(tdp_w__in=[100, 200]).delete()
    assert [row.tdp_w for row in page(order, limit=2, url=first.next_url).rows] == [300, 400]


@pytest.mark.django_db
def test_the_ends_of_a_list_have_no_neighbours():
    save_gpus([100, 200, 300])
    order = Order(column="tdp_w", is_nullable=True)
    first = page(order, limit=2)
    last = page(order, limit=2, url=first.next_url)
    assert (first.previous_url, last.next_url) == (None, None)
    assert page(order, limit=2, url=last.previous_url).previous_url is None
    assert page(order, limit=3).next_url is None


@pytest.mark.parametrize("cursor", ["x", "e30", "e30:abc", ":", "WyIxIl0:AAAA", "é", "9" * 900])
def test_a_cursor_made_up_is_refused_by_name(cursor):
    with pytest.raises(ValidationError) as refused:
        page(Order(column="tdp_w"), limit=2, url=f"/list/?cursor={cursor}")
    assert list(refused.value.detail) == ["cursor"]


@pytest.mark.django_db
def test_a_cursor_of_another_order_is_refused():
    save_gpus([100, 200, 300])
    url = page(Order(column="tdp_w", is_nullable=True), limit=2).next_url
    with pytest.raises(ValidationError, match="another ordering"):
        page(Order(column="position"), limit=2, url=url)


@pytest.mark.django_db
def test_the_addresses_keep_the_other_parameters():
    save_gpus([100, 200, 300])
    url = page(Order(column="position"), limit=1, url="/list/?limit=1&vendor=ACME").next_url
    assert url.startswith("http://testserver/list/?")
    assert "limit=1" in url
    assert "vendor=ACME" in url
