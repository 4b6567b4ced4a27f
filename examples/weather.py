"""The first example of the README: sample data, and a model that computes with it."""

from habilis import Agent


def temperature(city: str) -> float:
    """Temperature in a city, in degrees Celsius."""
    return {'Oslo': 4.5, 'Rome': 18.0}[city]


if __name__ == '__main__':
    with Agent(tools=[temperature], output_type=float) as agent:
        result = agent.run_sync('How many degrees warmer is it in Rome than in Oslo?')
        print(result.output)
