"""A function for `habilis run "What do 3 teas and 2 coffees cost?" --tools shop:price`."""


def price(product: str) -> float:
    """Price of one product, in euros. Products: tea, coffee."""
    return {'tea': 3.0, 'coffee': 4.5}[product]
