def amount_of(text: str) -> float:
    return float(text.replace('.', '').replace(',', '.'))
