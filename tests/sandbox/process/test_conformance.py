"""The shipped suite against the `process` backend."""

from habilis.sandbox.conformance import IsolationConformance, SandboxConformance


class TestProcess(SandboxConformance):
    backend = 'process'


class TestProcessIsolation(IsolationConformance):
    backend = 'process'
    has_processes = True
