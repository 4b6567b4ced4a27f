"""A function that a small model defines over one of its tools is left out."""

from habilis.agent.parsing.shadows import without_shadows


def test_a_definition_over_a_tool_goes_and_the_lines_keep_their_numbers() -> None:
    code = 'x = 1\n@cache\ndef final_answer(value):\n    print(value)\n\nfinal_answer(x)'
    assert without_shadows(code, {'final_answer'}) == 'x = 1\n\n\n\n\nfinal_answer(x)'


def test_other_definitions_stay_and_so_does_what_is_not_python() -> None:
    code = 'def area(r):\n    def final_answer(): ...\n    return r'
    assert without_shadows(code, {'final_answer'}) == code
    assert without_shadows('def (', {'final_answer'}) == 'def ('


def test_a_long_literal_over_a_text_of_the_user_goes_and_a_short_one_stays() -> None:
    typed = 'rows = """\n' + 'a,b\n' * 20 + '"""\nprint(rows)'
    assert without_shadows(typed, (), ['rows']) == '\n' * 22 + 'print(rows)'
    assert without_shadows(typed, (), ['other']) == typed
    assert without_shadows('rows = "new"', (), ['rows']) == 'rows = "new"'
