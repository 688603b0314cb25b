"""Draw every picture of the pages: ``python docs/pictures``."""

from result import result
from stages import STAGES
from tutorials import roles, tomorrow

if __name__ == "__main__":
    for draw in (result, *STAGES, roles, tomorrow):
        draw()
