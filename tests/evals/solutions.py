"""How a person would solve each task: straightforward code that leaves its result in `answer`."""

_ROWS = """
import csv, io
rows = list(csv.DictReader(io.StringIO(sales)))
"""
_UNITS = f"""{_ROWS}
units = {{}}
for row in rows:
    units[row['region']] = units.get(row['region'], 0) + int(row['units'])
"""
_PEOPLE = """
import json
listed = json.loads(people)
"""

SOLUTIONS = {
    'percent': 'answer = 2480 * 17.5 / 100',
    'power-digits': 'answer = sum(int(digit) for digit in str(2 ** 100))',
    'compound': """
amount = 1500
for year in range(7):
    amount *= 1.03
answer = round(amount, 2)
""",
    'gcd': """
first, second = 123456, 7890
while second:
    first, second = second, first % second
answer = first
""",
    'sum-multiples': 'answer = sum(n for n in range(1000) if n % 3 == 0 or n % 5 == 0)',
    'train': 'answer = 337.5 / (2 + 15 / 60)',
    'vowels': "answer = sum(letter in 'aeiou' for letter in 'The quick brown fox jumps over the lazy dog'.lower())",
    'reverse-words': "answer = ' '.join(reversed('one two three four five'.split()))",
    'palindrome': """
letters = [letter for letter in 'A man, a plan, a canal: Panama'.lower() if letter.isalpha()]
answer = letters == letters[::-1]
""",
    'caesar': """
answer = ''.join(
    chr((ord(letter) - ord('A') - 3) % 26 + ord('A')) if letter.isalpha() else letter for letter in 'KHOOR ZRUOG'
)
""",
    'longest-word': "answer = max('programming languages evolve continuously over decades'.split(), key=len)",
    'initials': "answer = ''.join(word[0].upper() for word in 'Ada Maria King Lovelace'.split())",
    'days-between': """
from datetime import date
answer = (date(2024, 1, 1) - date(2023, 3, 15)).days
""",
    'weekday': """
from datetime import date
answer = date(1969, 7, 20).strftime('%A')
""",
    'leap-years': """
answer = sum(year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) for year in range(1900, 2025))
""",
    'add-days': """
from datetime import date, timedelta
answer = (date(2024, 2, 20) + timedelta(days=100)).isoformat()
""",
    'friday-13': """
from datetime import date
answer = sum(date(2015, month, 13).weekday() == 4 for month in range(1, 13))
""",
    'csv-total': f"{_ROWS}answer = sum(int(row['units']) * float(row['price']) for row in rows)",
    'csv-region': f'{_UNITS}answer = max(units, key=units.get)',
    'csv-month': """
sold = {'2024-01-12': 3, '2024-02-02': 20, '2024-02-14': 15, '2024-03-01': 8}
answer = sum(units for day, units in sold.items() if day.startswith('2024-02'))
""",
    'csv-group': f'{_UNITS}answer = units',
    'json-mean': f"{_PEOPLE}answer = sum(person['age'] for person in listed) / len(listed)",
    'json-filter': f"{_PEOPLE}answer = [person['name'] for person in listed if 'en' in person['langs']]",
    'json-nested': """
def total(value):
    if isinstance(value, dict):
        return sum(map(total, value.values()))
    return sum(map(total, value)) if isinstance(value, list) else value

answer = total({'a': {'b': [1, {'c': 42}, 3]}, 'd': [4, 5]})
""",
    'json-cities': f"{_PEOPLE}answer = len({{person['city'] for person in listed}})",
    'sort-length': "answer = sorted(['pear', 'fig', 'banana', 'apple', 'kiwi'], key=lambda word: (len(word), word))",
    'top-three': 'answer = sorted([17, 4, 99, 23, 56, 8, 71, 42], reverse=True)[:3]',
    'sort-last-digit': 'answer = sorted([31, 12, 45, 20, 57, 8], key=lambda number: number % 10)',
    'median': """
import statistics
answer = statistics.median([12, 5, 22, 30, 7, 36, 14, 42, 15, 53])
""",
    'primes': 'answer = sum(all(n % divisor for divisor in range(2, n)) for n in range(2, 1000))',
    'fibonacci': """
last, before = 1, 0
for _ in range(49):
    last, before = last + before, last
answer = last
""",
    'collatz': """
number, answer = 27, 0
while number != 1:
    number = number // 2 if number % 2 == 0 else 3 * number + 1
    answer += 1
""",
    'roman': """
number, answer = 1994, ''
for value, sign in [(1000, 'M'), (900, 'CM'), (500, 'D'), (400, 'CD'), (100, 'C'), (90, 'XC'), (50, 'L'), (40, 'XL'),
                    (10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')]:
    while number >= value:
        answer, number = answer + sign, number - value
""",
    'binary': """
number, answer = 1000, ''
while number:
    answer, number = str(number % 2) + answer, number // 2
""",
    'anagrams': """
from collections import Counter
words = 'listen silent enlist google elbow below cat'.split()
answer = sum(count > 1 for count in Counter(''.join(sorted(word)) for word in words).values())
""",
    'tool-bill': "answer = 3 * unit_price('tea') + 2 * unit_price('coffee') + unit_price('cake')",
    'tool-stock': "answer = sorted(part for part in ['bolts', 'nuts', 'gears', 'belts'] if in_stock(part) < 50)",
    'tool-exchange': "answer = 250 * exchange_rate('EUR', 'USD')",
    'tool-distance': """
tour = ['Thun', 'Bern', 'Basel', 'Chur']
answer = sum(distance_km(start, end) for start, end in zip(tour, tour[1:]))
""",
    'tool-warmest': "answer = max(range(24), key=lambda hour: temperature('Rome', hour))",
    # Held out
    'discounts': 'answer = 180 * (1 - 0.15) * (1 - 0.2)',
    'squares': 'answer = sum(range(31)) ** 2 - sum(number ** 2 for number in range(31))',
    'seconds': 'answer = ((3 * 24 + 4) * 60 + 17) * 60',
    'count-letter': "answer = 'Mississippi river steamships'.lower().count('s')",
    'snake-case': """
answer = ''.join(f'_{letter.lower()}' if letter.isupper() else letter for letter in 'maximumNumberOfRetries')
""",
    'common-letters': "answer = sorted(set('planet') & set('laptop'))",
    'age': """
from datetime import date
born, day = date(1984, 11, 23), date(2024, 3, 1)
answer = day.year - born.year - ((day.month, day.day) < (born.month, born.day))
""",
    'last-of-february': """
from datetime import date, timedelta
answer = (date(2028, 3, 1) - timedelta(days=1)).strftime('%A')
""",
    'csv-largest': f"""{_ROWS}
answer = max(int(row['units']) * float(row['price']) for row in rows)
""",
    'csv-rain': """
rain = [61, 48, 70, 93, 120]
answer = sum(later > earlier for earlier, later in zip(rain, rain[1:]))
""",
    'json-youngest': f"""{_PEOPLE}
youngest = min(person['age'] for person in listed)
answer = sorted(person['name'] for person in listed if person['age'] == youngest)
""",
    'json-languages': f"""{_PEOPLE}
answer = len({{language for person in listed for language in person['langs']}})
""",
    'sort-cities': """
people = {'Oslo': 709, 'Rome': 2873, 'Bern': 134, 'Lisbon': 545}
answer = sorted(people, key=people.get, reverse=True)
""",
    'no-duplicates': 'answer = list(dict.fromkeys([5, 3, 5, 8, 3, 1, 8, 9]))',
    'perfect': """
answer = [number for number in range(2, 1000) if sum(d for d in range(1, number) if number % d == 0) == number]
""",
    'divisible': """
import math
answer = math.lcm(*range(1, 16))
""",
    'run-lengths': """
from itertools import groupby
answer = ''.join(f'{letter}{len(list(run))}' for letter, run in groupby('aaabccddddd'))
""",
    'tool-colder': "answer = min(['Bern', 'Rome'], key=lambda city: temperature(city, 6))",
    'tool-yen': "answer = 40 * exchange_rate('USD', 'JPY')",
    'tool-missing': """
needed = {'bolts': 60, 'nuts': 90, 'gears': 20}
answer = sum(max(0, number - in_stock(part)) for part, number in needed.items())
""",
}
