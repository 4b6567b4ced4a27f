"""The client that the official conformance suite starts: uses all tools of the server at the address it is given.

`conformance client --command 'python -m tests.tools.mcp.conformance_client' --scenario NAME`
"""

import asyncio
import sys

from habilis.core.errors import HabilisError
from habilis.tools import McpServer, Toolbox

VALUES: dict[str, object] = {'string': 'x', 'number': 2, 'integer': 2, 'boolean': True, 'array': [], 'object': {}}


async def main(url: str) -> None:
    server = McpServer(url=url, ask=lambda question: '', timeout=20)
    try:
        tools = await server.opened()
        box = Toolbox([tools], approve=lambda request: True)
        for tool in tools.tools:
            schema = tool.parameters
            properties, required = schema['properties'], schema['required']
            assert isinstance(properties, dict)
            assert isinstance(required, list)
            arguments: dict[str, object] = {}
            for name in required:
                wanted = properties[str(name)]
                arguments[str(name)] = VALUES.get(str(wanted.get('type')) if isinstance(wanted, dict) else '', 2)
            try:
                print(tool.name, await box.call(tool.name, **arguments))
            except HabilisError as error:
                print(tool.name, 'failed:', error)
    finally:
        await server.close()


if __name__ == '__main__':
    asyncio.run(main(sys.argv[-1]))
