"""The official client of OpenAI talks to the assistant."""

from collections.abc import Sequence

import openai
import pytest

from habilis.models.contract import Message
from tests.server.assistant.conftest import Serve

SCRIPT = ['I add.\n```python\nx = 1 + 2\nprint("sum", x)\n```', '```python\nfinal_answer(x * 2)\n```']


def client(address: str, key: str = 'unused') -> openai.OpenAI:
    return openai.OpenAI(base_url=f'{address}/v1', api_key=key, max_retries=0)


def test_models_are_listed(serve: Serve) -> None:
    with serve(SCRIPT) as address, client(address) as user:
        assert [model.id for model in user.models.list()] == ['habilis', 'scripted:script']


def test_a_completion_is_answered(serve: Serve) -> None:
    with serve(SCRIPT) as address, client(address) as user:
        done = user.chat.completions.create(model='habilis', messages=[{'role': 'user', 'content': 'Add 1 and 2'}])
        [choice] = done.choices
        assert choice.message.content == 'I add.\n\n6'
        assert 'sum 3' in str(choice.message.to_dict()['reasoning_content'])
        assert done.usage is not None
        assert done.usage.total_tokens > 0


def test_a_question_of_the_model_is_the_reply(serve: Serve) -> None:
    with serve(["```python\nask_user('For how many people?')\n```"]) as address, client(address) as user:
        done = user.chat.completions.create(model='habilis', messages=[{'role': 'user', 'content': 'Book a table'}])
        assert done.choices[0].message.content == 'For how many people?'
        assert 'NeedsAnswer' not in str(done.choices[0].message.to_dict()['reasoning_content'])


def test_the_messages_before_are_the_history(serve: Serve) -> None:
    def reply(messages: Sequence[Message]) -> str:
        said = [message.text for message in messages if message.role == 'assistant']
        return f'```python\nfinal_answer({said!r})\n```'

    with serve(reply) as address, client(address) as user:
        done = user.chat.completions.create(
            model='habilis',
            messages=[
                {'role': 'system', 'content': 'Be short.'},
                {'role': 'user', 'content': 'Hello'},
                {'role': 'assistant', 'content': 'Good day'},
                {'role': 'user', 'content': 'What did you say?'},
            ],
        )
        assert done.choices[0].message.content == "['Good day']"


def test_a_completion_is_streamed(serve: Serve) -> None:
    with serve(SCRIPT) as address, client(address) as user:
        chunks = list(
            user.chat.completions.create(
                model='habilis',
                messages=[{'role': 'user', 'content': 'Add 1 and 2'}],
                stream=True,
                stream_options={'include_usage': True},
            )
        )
        said = ''.join(chunk.choices[0].delta.content or '' for chunk in chunks if chunk.choices)
        assert said == 'I add.\n\n6'
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == 'stop'
        assert chunks[-1].usage is not None


def test_a_response_goes_on_with_the_variables_of_the_one_before(serve: Serve) -> None:
    script = ['```python\nx = 20\nfinal_answer("kept")\n```', '```python\nfinal_answer(x + 1)\n```']
    with serve(script) as address, client(address) as user:
        first = user.responses.create(model='habilis', input='Keep 20')
        assert first.output_text == 'kept'
        with user.responses.stream(model='habilis', input='Add 1', previous_response_id=first.id) as stream:
            kinds = [event.type for event in stream]
            second = stream.get_final_response()
        assert second.output_text == '21'
        assert kinds[0] == 'response.created'
        assert kinds[-1] == 'response.completed'


@pytest.mark.parametrize(
    ('wrong', 'said'),
    [
        ({'model': 'gpt-9'}, "there is no 'gpt-9' here"),
        ({'tools': [{'type': 'function', 'function': {'name': 'f'}}]}, 'the agent calls its own tools'),
        ({'messages': [{'role': 'assistant', 'content': 'x'}]}, 'the last one must be of the user'),
        ({'messages': []}, 'messages'),
        ({'n': 3}, 'one answer at a time'),
        (
            {
                'messages': [
                    {
                        'role': 'user',
                        'content': [
                            {'type': 'text', 'text': 'See'},
                            {'type': 'image_url', 'image_url': {'url': 'http://169.254.169.254/'}},
                        ],
                    }
                ]
            },
            'nothing is fetched',
        ),
    ],
)
def test_what_cannot_be_done_is_a_400_that_says_why(serve: Serve, wrong: dict[str, object], said: str) -> None:
    given: dict[str, object] = {'model': 'habilis', 'messages': [{'role': 'user', 'content': 'Hello'}], **wrong}
    with serve(SCRIPT) as address, client(address) as user, pytest.raises(openai.BadRequestError, match=said):
        user.chat.completions.create(**given)  # type: ignore[call-overload]


def test_a_response_of_another_user_is_not_found(serve: Serve) -> None:
    keys = ('a' * 20, 'b' * 20)
    script = ['```python\nfinal_answer(1)\n```'] * 2
    with serve(script, keys=keys) as address, client(address, keys[0]) as ann, client(address, keys[1]) as bob:
        first = ann.responses.create(model='habilis', input='Hello')
        with pytest.raises(openai.BadRequestError, match='there is no response'):
            bob.responses.create(model='habilis', input='And?', previous_response_id=first.id)
        with pytest.raises(openai.AuthenticationError):
            client(address, 'wrong').responses.create(model='habilis', input='Hello')
