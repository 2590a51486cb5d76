# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pure: the report as JSON, JUnit XML and one HTML page that needs nothing else."""

from __future__ import annotations

import html
import json
import re
import typing as t
import xml.etree.ElementTree as ET

from . import api, report

# What XML 1.0 cannot hold.
_CONTROL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd]")
_COLOURS = {
    api.FAIL: "#b00020",
    api.ERROR: "#b05a00",
    api.ACCEPTED: "#7a6a00",
    api.NOT_APPLICABLE: "#666666",
    api.PASS: "#1b6e2c",
}
_STYLE = """
body{font:14px/1.4 system-ui,sans-serif;margin:2em;color:#222}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.3em .6em;border-bottom:1px solid #ddd}
th{position:sticky;top:0;background:#fff}
td.verdict{font-weight:bold;white-space:nowrap}
td.evidence{font-family:monospace;font-size:12px;word-break:break-word}
ul.numbers{list-style:none;padding:0}ul.numbers li{display:inline-block;margin-right:2em;font-size:1.2em}
"""


def as_json(found: t.Sequence[t.Mapping[str, str]], about: t.Mapping[str, t.Any]) -> str:
    return (
        json.dumps({**about, "counts": report.counts(found), "answers": list(found)}, indent=1, sort_keys=True) + "\n"
    )


def as_junit(found: t.Sequence[t.Mapping[str, str]], about: t.Mapping[str, t.Any]) -> str:
    """One suite for each host. An accepted risk counts as skipped, with its reason."""
    number = report.counts(found)
    totals = {"tests": str(len(found)), "failures": str(number[api.FAIL]), "errors": str(number[api.ERROR])}
    top = ET.Element("testsuites", {"name": f"attest {about['cluster']}", **totals})
    for host in sorted({row["host"] for row in found}):
        mine = [row for row in found if row["host"] == host]
        number = report.counts(mine)
        suite = ET.SubElement(
            top,
            "testsuite",
            {
                "name": host,
                "timestamp": about["started"],
                "tests": str(len(mine)),
                "failures": str(number[api.FAIL]),
                "errors": str(number[api.ERROR]),
                "skipped": str(number[api.NOT_APPLICABLE] + number[api.ACCEPTED]),
            },
        )
        for row in mine:
            name = {"classname": f"attest.{row['context']}.{row['actor']}", "name": f"{row['probe']}: {row['claim']}"}
            case = ET.SubElement(suite, "testcase", name)
            kind = {api.FAIL: "failure", api.ERROR: "error"}.get(row["verdict"], "skipped")
            text = _CONTROL.sub("?", row["evidence"])
            if row["verdict"] != api.PASS:
                message = f"{row['verdict']}; control: {row['control']}"
                ET.SubElement(case, kind, {"message": message}).text = text
            else:
                ET.SubElement(case, "system-out").text = text
    ET.indent(top)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(top, encoding="unicode") + "\n"


def as_html(found: t.Sequence[t.Mapping[str, str]], about: t.Mapping[str, t.Any]) -> str:
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f"<title>Attest {html.escape(about['cluster'])}</title><style>{_STYLE}</style></head><body>",
        f"<h1>Isolation of {html.escape(about['cluster'])}</h1>",
        f"<p>{html.escape(about['started'])}, run {html.escape(about['run'])}. ",
        "Each claim is about what a tenant cannot do; each was tried as a tenant. What could not be tried is an error.</p>",
        '<ul class="numbers">',
    ]
    for verdict, count in report.counts(found).items():
        lines.append(f'<li style="color:{_COLOURS[verdict]}">{count} {verdict}</li>')
    lines.append("</ul><table><thead><tr>")
    lines += [f"<th>{word}</th>" for word in ("verdict", "a tenant ...", "where", "evidence", "control", "probe")]
    lines.append("</tr></thead><tbody>")
    for row in found:
        where = f"{row['host']}, {api.CONTEXTS[row['context']]}, {api.ACTORS[row['actor']]}"
        lines.append(
            f'<tr><td class="verdict" style="color:{_COLOURS[row["verdict"]]}">{html.escape(row["verdict"])}</td>'
            f"<td>{html.escape(row['claim'])}</td><td>{html.escape(where)}</td>"
            f'<td class="evidence">{html.escape(row["evidence"])}</td><td>{html.escape(row["control"])}</td>'
            f'<td title="{html.escape(row["attack"], quote=True)}">{html.escape(row["probe"])}</td></tr>'
        )
    lines.append("</tbody></table></body></html>")
    return "\n".join(lines) + "\n"
