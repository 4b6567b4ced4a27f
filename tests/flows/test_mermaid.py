"""Workflows as Mermaid flowcharts, exactly."""

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.flows import StepStatus, Workflow
from habilis.journal import MemoryStore


def a(input: object = None) -> int:
    return 1


def b(a: int) -> int:
    return a + 1


def c(a: int) -> int:
    return a + 2


def many(outputs: object) -> bool:
    return False


def drawn(workflow: Workflow) -> str:
    return workflow.mermaid()


def chart(text: str) -> str:
    return dedent(text).lstrip('\n')


def test_steps_follow_one_another() -> None:
    assert drawn(Workflow('w').step(a).step(b)) == chart(
        """
        flowchart TD
            start([input])
            n1["a"]
            n2["b"]
            finish([output])
            start --> n1
            n1 --> n2
            n2 --> finish
        """
    )


def test_parallel_steps_stand_side_by_side() -> None:
    assert drawn(Workflow('w').step(a).parallel(b, c)) == chart(
        """
        flowchart TD
            start([input])
            n1["a"]
            n2["b"]
            n3["c"]
            finish([output])
            start --> n1
            n1 --> n2
            n1 --> n3
            n2 --> finish
            n3 --> finish
        """
    )


def test_a_step_for_each_item_has_a_shape_of_its_own() -> None:
    assert drawn(Workflow('w').each(a, over='input')) == chart(
        """
        flowchart TD
            start([input])
            n1[["for each: a"]]
            finish([output])
            start --> n1
            n1 --> finish
        """
    )


def test_a_loop_goes_back_to_its_condition() -> None:
    assert drawn(Workflow('w').loop(while_=many, body=a)) == chart(
        """
        flowchart TD
            start([input])
            n1{"while many"}
            n2["a"]
            finish([output])
            start --> n1
            n1 -->|yes| n2
            n2 --> n1
            n1 -->|no| finish
        """
    )


def test_a_choice_has_two_ways() -> None:
    assert drawn(Workflow('w').step(a).when(lambda outputs: True, b, c)) == chart(
        """
        flowchart TD
            start([input])
            n1["a"]
            n2{"if"}
            n3["b"]
            n4["c"]
            finish([output])
            start --> n1
            n1 --> n2
            n2 -->|yes| n3
            n2 -->|no| n4
            n3 --> finish
            n4 --> finish
        """
    )


def test_a_choice_without_a_second_way_continues() -> None:
    assert drawn(Workflow('w').when(many, a)) == chart(
        """
        flowchart TD
            start([input])
            n1{"if many"}
            n2["a"]
            finish([output])
            start --> n1
            n1 -->|yes| n2
            n2 --> finish
            n1 -->|no| finish
        """
    )


def test_a_nested_workflow_is_drawn_inside_a_box() -> None:
    inner = Workflow('inner').step(a).step(b)
    assert drawn(Workflow('w').step(a).step(inner)) == chart(
        """
        flowchart TD
            start([input])
            n1["a"]
            subgraph n2["inner"]
            n3["a"]
            n4["b"]
            end
            finish([output])
            start --> n1
            n1 --> n3
            n3 --> n4
            n4 --> finish
        """
    )


async def test_with_a_status_each_step_has_the_colour_of_its_state() -> None:
    def fails(a: int) -> None:
        raise ValueError(a)

    workflow, store = Workflow('w').step(a).parallel(b, fails).step(c), MemoryStore()
    run = await workflow.flow.start(journal=store)
    with pytest.raises(ValueError, match='1'):
        await run.result()
    text = workflow.mermaid(await workflow.status(store, run.id))
    assert text.endswith(
        chart(
            """
            classDef done fill:#d3f9d8,stroke:#2b8a3e
                classDef failed fill:#ffe3e3,stroke:#c92a2a
                classDef running fill:#d0ebff,stroke:#1864ab
                classDef waiting fill:#fff3bf,stroke:#e67700
                classDef not_run fill:#f1f3f5,stroke:#868e96
                class n1 done
                class n2 done
                class n3 failed
                class n4 not_run
            """
        )
    )


def test_steps_of_nested_workflows_have_their_own_states() -> None:
    inner = Workflow('inner').step(a)
    text = Workflow('w').step(a).step(inner).mermaid([StepStatus(path='w#1/inner#1/a#1', name='a', state='done')])
    assert 'class n1 not_run\n' in text
    assert 'class n3 done\n' in text


@given(st.text(st.characters(exclude_characters='/#~(', exclude_categories=('C', 'Z')), min_size=1))
def test_no_name_can_break_out_of_its_label(name: str) -> None:
    lines = drawn(Workflow('w').step(a, name=name)).splitlines()
    label = next(line for line in lines if line.strip().startswith('n1['))
    inside = label.strip().removeprefix('n1["').removesuffix('"]')
    assert not set('"<>`') & set(inside)
    assert len(lines) == 6


def test_letters_with_a_meaning_are_written_as_entities() -> None:
    assert 'n1["#34;#60;b#62;#34; #38; x"]' in drawn(Workflow('w').step(a, name='"<b>" & x'))
