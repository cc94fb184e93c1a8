"""The style of the page, for light and dark screens, wide and narrow ones."""

STYLE = """
:root {
  --paper: #ffffff; --card: #f6f7f9; --ink: #1d2126; --quiet: #5d6670; --rule: #dde1e6; --grid: #e9ecef;
  --bad: #b3261e; --ok: #1a7f37; --accent: #0072b2;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #cc79a7; --c4: #e69f00; --c5: #56b4e9;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --card: #1d2125; --ink: #e8eaed; --quiet: #a0a8b0; --rule: #343a40; --grid: #262b30;
    --bad: #ff7b72; --ok: #56d364; --accent: #58a6e0;
    --c0: #58a6e0; --c1: #f28c4b; --c2: #35c9a0; --c3: #e3a0c6; --c4: #f0b73f; --c5: #9ad5f7;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 28px 24px 64px; }
.brand { margin: 0; color: var(--accent); font-weight: 700; letter-spacing: .02em; }
h1 { font-size: 1.75rem; line-height: 1.25; margin: .1em 0 .3em; font-weight: 650; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.2em 0 .5em; padding-top: .9em; border-top: 1px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 1.2em 0 .3em; }
p { margin: .4em 0 .8em; max-width: 75ch; }
.lead { color: var(--quiet); font-size: 1.05rem; }
.quiet, figcaption { color: var(--quiet); font-size: .9rem; }
code { font: .88em ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px; margin: 20px 0; }
.cards div { background: var(--card); border-radius: 10px; padding: 12px 14px; display: flex; flex-direction: column;
  justify-content: space-between; }
.cards dt { color: var(--quiet); font-size: .82rem; line-height: 1.3; }
.cards dd { margin: 4px 0 0; font-size: 1.5rem; font-weight: 650; font-variant-numeric: tabular-nums; }
.notes { background: var(--card); border-left: 4px solid var(--c4); border-radius: 6px; padding: 10px 14px 10px 30px; }
figure { margin: 0; background: var(--card); border-radius: 10px; padding: 14px; }
figcaption { margin-top: 8px; }
.chart { display: block; width: 100%; height: auto; }
.chart text { font-size: 13px; fill: var(--quiet); font-variant-numeric: tabular-nums; }
.chart text.axis { font-size: 14px; fill: var(--ink); }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 330px), 1fr)); gap: 16px; }
path.grid { stroke: var(--grid); stroke-width: 1; display: inline; }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); }
.c3 { --c: var(--c3); } .c4 { --c: var(--c4); } .c5 { --c: var(--c5); }
.points { fill: var(--c); stroke: var(--card); stroke-width: .5; }
.s0 { fill-opacity: .3; } .s1 { fill-opacity: .5; } .s2 { fill-opacity: .75; } .s3 { fill-opacity: .95; }
.link { fill: none; stroke: var(--ink); stroke-width: 1.3; stroke-opacity: .75; }
.link.cannot { stroke-dasharray: 6 4; }
.link.many { stroke-width: 1; stroke-opacity: .4; }
.link.broken { stroke: var(--bad); stroke-width: 2.4; stroke-opacity: 1; }
.ring { fill: transparent; stroke: var(--ink); stroke-width: 1.3; }
.line { fill: none; stroke: var(--accent); stroke-width: 2; }
.dot, .bar { fill: var(--accent); }
.icon { width: 1em; height: 1em; vertical-align: -.12em; margin-right: .3em; fill: var(--c); }
.legend { list-style: none; margin: 10px 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: 4px 18px;
  font-size: .9rem; }
.legend li { display: flex; align-items: center; }
.key { width: 34px; height: 10px; margin-right: 6px; }
.fade { width: 40px; height: 10px; border-radius: 5px; margin-right: 6px;
  background: linear-gradient(90deg, var(--c0), color-mix(in srgb, var(--c0) 30%, var(--card))); }
article { background: var(--card); border-radius: 10px; padding: 14px 16px; }
article h3 { margin: 0; }
.bars { list-style: none; margin: 10px 0 0; padding: 0; font-size: .88rem; }
.bars li { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 1px 10px; padding: 3px 0; }
.bars .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.bars .value { font-variant-numeric: tabular-nums; white-space: nowrap; }
.bars small { color: var(--quiet); }
.track { grid-column: 1 / -1; position: relative; height: 9px; border-radius: 3px;
  background: linear-gradient(90deg, transparent calc(50% - 1px), var(--quiet) calc(50% - 1px) calc(50% + 1px),
  transparent calc(50% + 1px)), var(--grid); }
.track i { position: absolute; top: 1px; bottom: 1px; background: var(--c); border-radius: 2px; }
.scroll { overflow-x: auto; margin: .6em 0 1em; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; min-width: 60%; }
th, td { text-align: left; padding: 6px 18px 6px 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
th { color: var(--quiet); font-weight: 550; }
td { white-space: nowrap; }
.ok { color: var(--ok); } .bad { color: var(--bad); font-weight: 650; }
details { margin: .6em 0; } summary { cursor: pointer; color: var(--accent); }
footer { margin-top: 3em; padding-top: 1em; border-top: 1px solid var(--rule); color: var(--quiet); font-size: .9rem; }
@media (max-width: 560px) {
  main { padding: 18px 14px 40px; }
  h1 { font-size: 1.4rem; }
  figure { padding: 10px 8px; }
  .chart text { font-size: 19px; } .chart text.axis { font-size: 20px; }
  .grid .chart text { font-size: 15px; } .grid .chart text.axis { font-size: 16px; }
  .cards { grid-template-columns: repeat(2, 1fr); }
  table { min-width: 100%; } th, td { padding-right: 12px; }
}
@media print { body { background: #fff; color: #000; } figure, article { break-inside: avoid; } }
"""
