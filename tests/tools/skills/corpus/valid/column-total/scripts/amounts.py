def amount_of(text):
    return float(text.replace('.', '').replace(',', '.'))
