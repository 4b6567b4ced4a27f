"""A report as one HTML file: nothing is loaded from elsewhere, and each citation opens its passage."""

from html import escape

from markdown_it import MarkdownIt

from habilis.research.contract import Citation, Report
from habilis.research.markdown_report import linked, remarks, safe_address

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 1rem/1.6 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse }}
th, td {{ border: 1px solid #8886; padding: .2rem .6rem; text-align: left }}
blockquote {{ margin: .5rem 0; padding: .5rem 1rem; border-left: 3px solid #8886; overflow-wrap: anywhere }}
blockquote:target {{ border-color: #c60; background: #fc03 }}
.around {{ opacity: .6 }}
.facts {{ font-size: .85rem; opacity: .8; overflow-wrap: anywhere }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def render_html(report: Report) -> str:
    """The report as HTML."""
    renderer = MarkdownIt('commonmark', {'html': False}).enable('table')
    sources = {citation.id: citation.source for citation in report.citations}
    parts = [f'<h1>{escape(report.title)}</h1>']
    for section in report.sections:
        level = 1 + len(section.place)
        parts += [f'<h{level}>{escape(section.title)}</h{level}>', renderer.render(linked(section.text, sources))]
    parts += [f'<p><em>{escape(remark)}</em></p>' for remark in remarks(report)]
    if report.sources:
        parts += ['<h2>Sources</h2>', '<ol>', *_sources(report), '</ol>']
    return _PAGE.format(title=escape(report.title), body='\n'.join(parts))


def _sources(report: Report) -> list[str]:
    items: list[str] = []
    for number, page in enumerate(report.sources, 1):
        facts = [fact for fact in (page.author, page.date) if fact]
        facts += [f'accessed {page.accessed}', f'text {page.digest}']
        quotes = ''.join(_quote(one) for one in report.citations if one.source == number)
        link = f'<a href="{escape(safe_address(page.url))}" rel="noopener noreferrer nofollow">{escape(page.title)}</a>'
        items.append(f'<li>{link}<div class="facts">{escape(", ".join(facts))}</div>{quotes}</li>')
    return items


def _quote(citation: Citation) -> str:
    before, after = (f'<span class="around">{escape(text)}</span>' for text in (citation.before, citation.after))
    return f'<blockquote id="{citation.id}">{before}<mark>{escape(citation.quote)}</mark>{after}</blockquote>'
