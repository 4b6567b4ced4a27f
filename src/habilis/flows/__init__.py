"""Durable workflows: plain Python whose steps are recorded, so that a killed run can be resumed."""

from habilis.flows.context import FlowContext, current_flow
from habilis.flows.contract import (
    FlowArgumentsError,
    FlowDefinitionError,
    FlowError,
    FlowPaused,
    Job,
    Outcome,
    Question,
    StepStatus,
    StepTimeout,
)
from habilis.flows.definitions import Flow, FlowStep, flow, step
from habilis.flows.engine import Engine, LocalEngine, queue_job, run_job
from habilis.flows.parallel import parallel
from habilis.flows.pool import WorkerPool
from habilis.flows.questions import approval, ask
from habilis.flows.runs import FlowRun
from habilis.flows.status import flow_status
from habilis.flows.targets import load_target
from habilis.flows.workflow import Workflow

__all__ = [
    'Engine',
    'Flow',
    'FlowArgumentsError',
    'FlowContext',
    'FlowDefinitionError',
    'FlowError',
    'FlowPaused',
    'FlowRun',
    'FlowStep',
    'Job',
    'LocalEngine',
    'Outcome',
    'Question',
    'StepStatus',
    'StepTimeout',
    'WorkerPool',
    'Workflow',
    'approval',
    'ask',
    'current_flow',
    'flow',
    'flow_status',
    'load_target',
    'parallel',
    'queue_job',
    'run_job',
    'step',
]
