import csv


def column(path: str, name: str) -> list[str]:
    with open(path, encoding='utf-8') as file:
        return [row[name] for row in csv.DictReader(file, delimiter=';')]
