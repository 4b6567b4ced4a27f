"""The shipped suite against the `process` backend, with namespaces and without."""

import pytest

from habilis.sandbox.conformance.suite import IsolationConformance, SandboxConformance


class TestProcess(SandboxConformance):
    backend = 'process'


class TestProcessIsolation(IsolationConformance):
    backend = 'process'
    has_processes = True


@pytest.mark.usefixtures('no_namespaces')
class TestProcessAlone(SandboxConformance):
    backend = 'process'


@pytest.mark.usefixtures('no_namespaces')
class TestProcessAloneIsolation(IsolationConformance):
    backend = 'process'
