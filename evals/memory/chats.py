"""Long chats and questions about them, made by a program: the same every time, with many templates.

Each chat is mostly small talk about the same subjects, with the same words as what is asked for. What is asked for is
said once, somewhere in it.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from evals.memory.phrases import (
    ANSWERS,
    CONTRADICTIONS,
    EVENTS,
    FILLERS,
    NEVER,
    PARAPHRASES,
    PEOPLE,
    PLACES,
    REPLIES,
    SUBJECTS,
    THINGS,
    UPDATES,
    WEEKDAYS,
)

DAY = 86_400.0
START = 1_735_700_000.0
"""The first day of January 2025."""

SESSIONS = 80
FILLERS_PER_SESSION = 26


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, and the texts of the turns that answer it. None: it was never said."""

    kind: str
    text: str
    gold: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Said:
    """One turn."""

    session: str
    role: str
    text: str
    time: float


@dataclass
class _Planted:
    """Turns that belong together: said one after the other, or in later and later sessions."""

    together: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    later: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class ChatSet:
    """All turns, and all questions."""

    turns: list[Said]
    questions: list[Question]


def make(seed: int = 1) -> ChatSet:
    """The chats and questions of a seed."""
    chance = random.Random(seed)
    planted: list[_Planted] = []
    questions: list[Question] = []
    for maker in (_paraphrases, _names, _numbers, _dates, _updates, _contradictions, _events, _answers):
        for plant, question in maker(chance):
            planted.append(plant)
            questions.append(question)
    questions += [Question(kind='never said', text=text) for text in NEVER]
    return ChatSet(list(_turns(chance, planted)), questions)


def _turns(chance: random.Random, planted: list[_Planted]) -> Iterator[Said]:
    sessions: list[list[list[tuple[str, str]]]] = [_small_talk(chance) for _ in range(SESSIONS)]
    for plant in planted:
        if plant.later:
            numbers = sorted(chance.sample(range(SESSIONS), len(plant.later)))
            for number, text in zip(numbers, plant.later, strict=True):
                _insert(chance, sessions[number], [('user', text), ('assistant', chance.choice(REPLIES))])
        else:
            _insert(chance, sessions[chance.randrange(SESSIONS)], plant.together)
    for number, parts in enumerate(sessions):
        said = [turn for part in parts for turn in part]
        for place, (role, text) in enumerate(said):
            time = START + number * 4.5 * DAY + place * 40
            yield Said(session=f'chat-{number:03}', role=role, text=text, time=time)


def _insert(chance: random.Random, parts: list[list[tuple[str, str]]], new: list[tuple[str, str]]) -> None:
    parts.insert(chance.randrange(len(parts) + 1), new)


def _small_talk(chance: random.Random) -> list[list[tuple[str, str]]]:
    parts: list[list[tuple[str, str]]] = []
    for _ in range(FILLERS_PER_SESSION // 2):
        text = chance.choice(FILLERS).format(
            person=chance.choice(PEOPLE),
            place=chance.choice(PLACES),
            thing=chance.choice(THINGS),
            subject=chance.choice(SUBJECTS),
            day=chance.choice(WEEKDAYS),
            number=chance.randrange(2, 90),
        )
        parts.append([('user', text), ('assistant', chance.choice(REPLIES))])
    return parts


_Pair = tuple[_Planted, Question]


def _alone(kind: str, statement: str, question: str) -> _Pair:
    plant = _Planted(together=[('user', statement), ('assistant', 'Thanks, noted.')])
    return plant, Question(kind=kind, text=question, gold=(statement,))


def _paraphrases(_: random.Random) -> Iterator[_Pair]:
    yield from (_alone('paraphrase', statement, question) for statement, question in PARAPHRASES)


def _names(chance: random.Random) -> Iterator[_Pair]:
    templates: list[tuple[Callable[[str, str], str], Callable[[str, str], str]]] = [
        (lambda w, n: f'By the way, the name of my {w} is {n}.', lambda w, _: f'What is my {w} called?'),
        (lambda w, n: f'{n} is my {w}, you will hear that name a lot.', lambda w, _: f'Who is my {w}?'),
        (lambda w, n: f'I talked to {n} today, my {w}.', lambda _, n: f'Who is {n}?'),
        (lambda w, n: f'My {w}, {n}, called me twice this morning.', lambda w, _: f'Remind me of the name of my {w}.'),
    ]
    roles = (
        'accountant aunt barber boss brother-in-law carpenter cousin dentist electrician godmother gardener goldfish '
        'grandfather hamster handball-coach hairdresser horse insurance-agent kitten landlord lawyer librarian '
        'mechanic mentor midwife nephew neighbour niece optician parrot physiotherapist piano-teacher plumber '
        'professor roommate sailing-partner stepmother tailor tutor veterinarian'
    ).split()
    first = 'Ada Bruno Chiara Dmitri Elif Farid Greta Hugo Ines Joris Katrin Luca Mira Nils Olga Pavel Rosa'.split()
    last = 'Abbas Bianchi Castro Dvorak Eriksen Fontaine Gruber Horvat Ivanova Jansen Kowalski Lindqvist Moreau'.split()
    for number, role in enumerate(roles):
        name = f'{first[number % len(first)]} {last[(number * 5) % len(last)]}'
        say, ask = templates[number % len(templates)]
        word = role.replace('-', ' ')
        yield _alone('names', say(word, name), ask(word, name))
    chance.random()


def _numbers(chance: random.Random) -> Iterator[_Pair]:
    items = (
        ('the rent of the studio', 'rent for the studio', 'euros a month'),
        ('my locker at the gym', 'gym locker', ''),
        ('the alarm of the cabin', 'alarm code of the cabin', ''),
        ('my marathon time', 'time in the marathon', 'minutes'),
        ('the weight of the parcel', 'parcel weigh', 'grams'),
        ('the wifi of the summer house', 'summer house wifi', ''),
        ('the mileage of the van', 'mileage on the van', 'kilometres'),
        ('my shoe size in Japan', 'Japanese shoe size', ''),
        ('the height of the bookcase', 'tall is the bookcase', 'centimetres'),
        ('the deposit for the flat', 'deposit on the flat', 'euros'),
        ('the extension of the help desk', 'extension of the help desk', ''),
        ('my blood pressure', 'blood pressure', ''),
        ('the freezer', 'temperature of the freezer', 'degrees below zero'),
        ('the sourdough', 'hydration of the sourdough', 'percent'),
        ('the salary of the new job', 'salary in the new job', 'thousand a year'),
        ('the platform of the night train', 'platform of the night train', ''),
        ('the guest list of the wedding', 'guests on the wedding list', 'people'),
        ('my library card', 'library card number', ''),
        ('the electricity meter', 'electricity meter reading', 'kilowatt hours'),
        ('the fence', 'length of the fence', 'metres'),
    )
    templates = (
        ('{item}: {value} {unit}, please keep that.', 'What is the {about}?'),
        ('I checked {item}, it is {value} {unit}.', 'Which number did I give you for the {about}?'),
    )
    for number, (item, about, unit) in enumerate(items):
        for turn in range(2):
            value = chance.randrange(100, 9999)
            say, ask = templates[(number + turn) % 2]
            whose = ('', 'of my brother ')[turn]
            statement = say.format(item=f'{item} {whose}'.strip(), value=value, unit=unit).replace(' .', '.')
            yield _alone('numbers', statement, f'{ask.format(about=about)[:-1]} {whose}'.strip() + '?')


def _dates(chance: random.Random) -> Iterator[_Pair]:
    events = (
        'dentist appointment, visa interview, school play, boiler inspection, thesis defence, car inspection, '
        'piano recital, book club meeting, tax deadline, flu vaccination, ferry to Elba, housewarming party, '
        'job interview, passport renewal, ski trip, board meeting, wedding anniversary, blood donation, '
        'chess tournament, parents evening, roof repair, museum visit, eye test, moving day, choir rehearsal, '
        'budget review, fishing trip, puppy training, fire drill, charity run, opera night, sailing exam, garden fair, '
        'court hearing, baptism, class reunion, knee surgery, product launch, gas meter exchange, farewell lunch'
    ).split(', ')
    months = 'January February March April May June July August September October November December'.split()
    templates = (
        ('The {event} is on {month} {day}.', 'When is the {event}?'),
        ('They moved the {event} to the {day} of {month}.', 'What date is the {event}?'),
        ('Please note {month} {day} for the {event}.', 'What do I have on {month} {day}?'),
        ('{month} {day} works for the {event}, I confirmed it.', 'On which day did I confirm the {event}?'),
    )
    for number, event in enumerate(events):
        say, ask = templates[number % len(templates)]
        values = {'event': event, 'month': chance.choice(months), 'day': chance.randrange(1, 29)}
        yield _alone('dates', say.format(**values), ask.format(**values))


def _updates(_: random.Random) -> Iterator[_Pair]:
    for old, new, question in UPDATES:
        yield _Planted(later=[old, new]), Question(kind='updates', text=question, gold=(new,))


def _contradictions(_: random.Random) -> Iterator[_Pair]:
    for one, other, question in CONTRADICTIONS:
        yield _Planted(later=[one, other]), Question(kind='contradictions', text=question, gold=(one, other))


def _events(_: random.Random) -> Iterator[_Pair]:
    yield from (_alone('when did I', statement, question) for statement, question in EVENTS)


def _answers(_: random.Random) -> Iterator[_Pair]:
    """The assistant asks, and the answer has none of the words."""
    for asked, answer, question in ANSWERS:
        yield (
            _Planted(together=[('assistant', asked), ('user', answer)]),
            Question(kind='answers', text=question, gold=(answer,)),
        )
