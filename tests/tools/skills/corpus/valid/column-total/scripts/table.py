import csv


def column(path, name):
    with open(path, encoding='utf-8') as file:
        return [row[name] for row in csv.DictReader(file, delimiter=';')]
