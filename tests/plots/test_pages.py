"""Templates that escape every value and refuse a missing one."""

import pytest
from jinja2 import UndefinedError

from linkmix.plots.pages import Markup, render

TEMPLATE = """{% extends "frame.html" %}{% from "parts.html" import table %}
{% block title %}{{ name }}{% endblock %}{% block heading %}{{ name }}{% endblock %}{% block lead %}{% endblock %}
{% block body %}<i title="{{ name }}">{{ chart }}</i>{{ table([name], [[name, 3]]) }}{% endblock %}"""


@pytest.fixture
def template(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(TEMPLATE)
    return path


def test_values_are_escaped_and_markup_is_not(template):
    evil = "</title>\"'><script>alert(1)</script>&\u202e"
    content = render(template, name=evil, chart=Markup("<svg></svg>"), command=evil)
    safe = "&lt;/title&gt;&#34;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;\N{REPLACEMENT CHARACTER}"
    assert "<script" not in content
    assert content.count(safe) == 6
    assert f'<i title="{safe}"><svg></svg></i>' in content
    assert f"<tr><td><bdi>{safe}</bdi></td><td><bdi>3</bdi></td></tr>" in content
    assert "default-src 'none'" in content


def test_a_missing_value_is_an_error(template):
    with pytest.raises(UndefinedError, match="'chart' is undefined"):
        render(template, name="a", command="b")
