"""The official client of the Model Context Protocol, in three revisions."""

import contextlib
import unittest
from unittest import mock

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from gateway import KEY, URL

REVISIONS = ("2026-07-28", "2025-11-25", "2025-06-18")


@contextlib.asynccontextmanager
async def connected(revision, key=KEY):
    """A client that speaks this revision. In the older ones it begins with a handshake."""
    mode = "auto" if revision == REVISIONS[0] else "legacy"
    headers = {"authorization": f"Bearer {key}"}
    with mock.patch("mcp.client.session.LATEST_HANDSHAKE_VERSION", revision if mode == "legacy" else REVISIONS[1]):
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            async with Client(streamable_http_client(f"{URL}/mcp", http_client=http), mode=mode) as client:
                yield client


def in_each_revision(test):
    async def run(self):
        for revision in REVISIONS:
            with self.subTest(revision=revision):
                async with connected(revision) as client:
                    self.assertEqual(client.protocol_version, revision)
                    await test(self, client)

    run.__name__ = test.__name__
    return run


class McpClient(unittest.IsolatedAsyncioTestCase):
    @in_each_revision
    async def test_lists_the_tools_of_all_servers(self, client):
        tools = (await client.list_tools()).tools
        self.assertEqual([tool.name for tool in tools], [f"{server}_{name}" for server in ("new", "old") for name in ("broken", "search", "slow")])
        self.assertEqual(tools[1].input_schema["properties"], {"q": {"type": "string"}})

    @in_each_revision
    async def test_calls_tools_of_servers_of_both_eras(self, client):
        for name in ("new_search", "old_search"):
            result = await client.call_tool(name, {"q": "tides"})
            self.assertEqual([block.text for block in result.content], ["found tides"])
            self.assertFalse(result.is_error)

    @in_each_revision
    async def test_sees_the_error_of_a_tool_as_a_result(self, client):
        result = await client.call_tool("new_broken", {})
        self.assertTrue(result.is_error)
        self.assertEqual(result.content[0].text, "no luck")

    @in_each_revision
    async def test_gets_progress_while_a_tool_works(self, client):
        seen = []

        async def note(progress, total, message):
            seen.append((progress, total, message))

        await client.call_tool("old_slow", {}, progress_callback=note)
        self.assertEqual(seen, [(1, 2, "half")])

    @in_each_revision
    async def test_raises_for_a_tool_that_is_unknown(self, client):
        with self.assertRaises(MCPError) as raised:
            await client.call_tool("new_nothing", {})
        self.assertEqual(raised.exception.code, -32602)

    @in_each_revision
    async def test_gets_prompts_and_resources(self, client):
        prompts = (await client.list_prompts()).prompts
        self.assertEqual([prompt.name for prompt in prompts], ["new_greet", "old_greet"])
        greeting = await client.get_prompt("new_greet", {"name": "Ann"})
        self.assertEqual(greeting.messages[0].content.text, "Hello Ann")
        resources = (await client.list_resources()).resources
        self.assertEqual([str(resource.uri) for resource in resources], ["file:///a"])
        contents = (await client.read_resource("file:///a")).contents
        self.assertEqual(contents[0].text, "the text of a")

    async def test_cannot_connect_with_a_key_that_is_unknown(self):
        for revision in REVISIONS:
            with self.subTest(revision=revision), self.assertRaises(BaseException):
                async with connected(revision, "sk-nobody") as client:
                    await client.list_tools()
