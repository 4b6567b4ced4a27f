"""The policy of every model: name what went wrong in one sentence, and take answers as they are."""

from collections.abc import Mapping

from habilis.agent.context.prompt import prompt_file
from habilis.agent.policies.contract import History, SeenCell, SeenReply, Verdict
from habilis.agent.policies.hints import hint_for

MEMORY_TOKENS = 800


class GeneralPolicy:
    """Explains unusable replies and failed cells, and asks once about words that no working code came before."""

    def text(self, name: str) -> str:
        """The file itself."""
        return prompt_file(name)

    def imports(self) -> Mapping[str, str]:
        """Nothing: code imports what it uses."""
        return {}

    def task_note(self, history: History, *, can_stop: bool) -> str:
        """Nothing: the system prompt says it all."""
        return ''

    def temperature(self, history: History) -> float | None:
        """As the model has it."""
        return None

    def may_ask_people(self) -> bool:
        """Yes: the model asks only for what it cannot find out."""
        return True

    def memory_tokens(self) -> int:
        """About half a page."""
        return MEMORY_TOKENS

    def after_reply(self, reply: SeenReply, history: History) -> Verdict:
        """Say what is wrong with a reply that cannot be used. What cannot be used need not be seen again."""
        if reply.is_answer:
            return self._question_words(history)
        forget = 'reply' if reply.form in ('empty', 'repeating') else 'nothing'
        return Verdict(note=self.text(f'reply_{reply.form}'), forget=forget)

    def _question_words(self, history: History) -> Verdict:
        """Words before any code, or right after code that failed, may announce work instead of doing it."""
        has_begun = bool(history.cells) or history.has_called_tools
        error = history.cells[-1].cell.error if history.cells else None
        has_failed = error is not None and error.kind != 'cancelled'  # by a person, who has the next word
        if history.has_refused or not history.expects_code or (has_begun and not has_failed):
            return Verdict()
        return Verdict(note=self.text('code_failed' if has_begun else 'no_code_run'), refuse=True)

    def after_cell(self, cell: SeenCell, history: History) -> Verdict:
        """Add a hint to what the cell printed."""
        return Verdict() if cell.is_answer else Verdict(note=hint_for(cell))
