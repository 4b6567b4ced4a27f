"""The file of a report: Markdown, HTML or PDF, by its suffix."""

from collections.abc import Callable, Mapping
from pathlib import Path

from habilis.research.contract import Report, ResearchError
from habilis.research.html_report import render_html
from habilis.research.markdown_report import render_markdown


def _pdf(report: Report) -> bytes:
    from habilis.research.pdf_report import render_pdf  # fpdf2 is optional

    return render_pdf(report)


RENDERERS: Mapping[str, Callable[[Report], bytes]] = {
    '.md': lambda report: render_markdown(report).encode(),
    '.html': lambda report: render_html(report).encode(),
    '.pdf': _pdf,
}


def check_file(path: str) -> None:
    """Raise `ResearchError` for a file that no report can be written to, before the work is done."""
    if Path(path).suffix.lower() not in RENDERERS:
        msg = f'{path}: the name of a report ends with {", ".join(RENDERERS)}'
        raise ResearchError(msg)
    if not Path(path).absolute().parent.is_dir():
        msg = f'{path}: there is no such folder'
        raise ResearchError(msg)


def write_report(report: Report, path: str) -> None:
    """Write the report. Raises `ResearchError`."""
    check_file(path)
    data = RENDERERS[Path(path).suffix.lower()](report)
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        msg = f'cannot write {path}: {error.strerror}'
        raise ResearchError(msg) from error
