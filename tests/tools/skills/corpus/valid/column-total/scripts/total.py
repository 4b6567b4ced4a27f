import sys

from amounts import amount_of
from table import column

if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit('usage: total.py FILE COLUMN')
    print(round(sum(map(amount_of, column(sys.argv[1], sys.argv[2]))), 2))
    sys.exit(0)
