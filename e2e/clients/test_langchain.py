"""LangChain's models for both protocols, on a model of each protocol."""

import functools
import unittest

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from gateway import AFTER_TOOL, CITY_SCHEMA, GREETING, KEY, MODELS, TOOL_INPUT, URL


@tool
def get_weather(city: str) -> str:
    """Tells the weather of a city."""
    return f"sunny in {city}"


def openai(model):
    return ChatOpenAI(model=model, api_key=KEY, base_url=f"{URL}/v1", max_retries=0)


def anthropic(model):
    return ChatAnthropic(model=model, api_key=KEY, base_url=URL, max_tokens=100, max_retries=0)


def on_each_client(test):
    """Runs a test with each client on a model of each protocol."""

    @functools.wraps(test)
    def run(self):
        for make in (openai, anthropic):
            for model in MODELS:
                with self.subTest(client=make.__name__, model=model):
                    test(self, make(model))

    return run


class LangChain(unittest.TestCase):
    @on_each_client
    def test_invokes(self, llm):
        answer = llm.invoke("scenario: greet")
        self.assertEqual(answer.text, GREETING)
        self.assertEqual(answer.usage_metadata["total_tokens"], 15)

    @on_each_client
    def test_streams(self, llm):
        self.assertEqual("".join(chunk.text for chunk in llm.stream("scenario: greet")), GREETING)

    @on_each_client
    def test_calls_a_tool_and_gives_its_result(self, llm):
        bound = llm.bind_tools([get_weather])
        history = [HumanMessage("scenario: tool")]
        first = bound.invoke(history)
        call = first.tool_calls[0]
        self.assertEqual((call["name"], call["args"]), ("get_weather", TOOL_INPUT))
        result = ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])
        self.assertEqual(bound.invoke([*history, first, result]).text, AFTER_TOOL)

    def test_gets_structured_output_by_a_schema(self):
        for model in MODELS:
            with self.subTest(model=model):
                bound = openai(model).with_structured_output(CITY_SCHEMA, method="json_schema")
                self.assertEqual(bound.invoke("scenario: structured"), {"city": "Bern", "degrees": 21})


if __name__ == "__main__":
    unittest.main()
