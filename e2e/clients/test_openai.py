"""The official OpenAI client, on a model of each protocol."""

import asyncio
import json
import unittest

import openai
import pydantic

from gateway import AFTER_TOOL, CHAT, GREETING, KEY, LIMITED_KEY, MESSAGES, SCHEMA, TOOL_INPUT, URL
from gateway import RATED_KEYS, RESPONSES, CITY_SCHEMA, ended_with, on_each_model, requests_with, word

TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": SCHEMA}}]


def client(key=KEY, **options):
    return openai.OpenAI(api_key=key, base_url=f"{URL}/v1", **{"max_retries": 0, **options})


def ask(scenario):
    return [{"role": "user", "content": f"scenario: {scenario}"}]


class OpenAIClient(unittest.TestCase):
    def test_lists_models_and_reads_one(self):
        names = [model.id for model in client().models.list()]
        self.assertIn(CHAT, names)
        self.assertIn(MESSAGES, names)
        self.assertIn(RESPONSES, names)
        self.assertEqual(client().models.retrieve(CHAT).id, CHAT)

    @on_each_model
    def test_gets_a_whole_answer(self, model):
        answer = client().chat.completions.create(model=model, messages=ask("greet"))
        self.assertEqual(answer.choices[0].message.content, GREETING)
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertEqual(answer.usage.prompt_tokens, 10)
        self.assertEqual(answer.usage.completion_tokens, 5)
        self.assertTrue(answer._request_id)

    @on_each_model
    def test_gets_a_stream_with_usage(self, model):
        text, usage = "", None
        stream = client().chat.completions.create(
            model=model, messages=ask("greet"), stream=True, stream_options={"include_usage": True}
        )
        for chunk in stream:
            text += "".join(choice.delta.content or "" for choice in chunk.choices)
            usage = chunk.usage or usage
        self.assertEqual(text, GREETING)
        self.assertEqual(usage.total_tokens, 15)

    @on_each_model
    def test_gets_a_stream_asynchronously(self, model):
        async def read(model):
            async with openai.AsyncOpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0) as own:
                stream = await own.chat.completions.create(model=model, messages=ask("greet"), stream=True)
                return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

        self.assertEqual(asyncio.run(read(model)), GREETING)

    @on_each_model
    def test_calls_a_tool_and_gives_its_result(self, model):
        first = client().chat.completions.create(model=model, messages=ask("tool"), tools=TOOLS)
        message = first.choices[0].message
        self.assertEqual(first.choices[0].finish_reason, "tool_calls")
        call = message.tool_calls[0]
        self.assertEqual((call.function.name, json.loads(call.function.arguments)), ("get_weather", TOOL_INPUT))
        history = [*ask("tool"), message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        second = client().chat.completions.create(model=model, messages=history, tools=TOOLS)
        self.assertEqual(second.choices[0].message.content, AFTER_TOOL)

    @on_each_model
    def test_gets_a_tool_call_from_a_stream(self, model):
        with client().chat.completions.stream(model=model, messages=ask("tool"), tools=TOOLS) as stream:
            final = stream.get_final_completion()
        call = final.choices[0].message.tool_calls[0]
        self.assertEqual((call.function.name, json.loads(call.function.arguments)), ("get_weather", TOOL_INPUT))

    @on_each_model
    def test_gets_structured_output(self, model):
        form = {"type": "json_schema", "json_schema": {"name": "weather", "schema": CITY_SCHEMA, "strict": True}}
        mark = word()
        answer = client().chat.completions.create(
            model=model, messages=ask(f"structured {mark}"), response_format=form
        )
        self.assertEqual(json.loads(answer.choices[0].message.content), {"city": "Bern", "degrees": 21})
        self.assertIn('"degrees"', requests_with(mark)[0]["text"])

    @on_each_model
    def test_raises_the_class_of_each_refusal(self, model):
        classes = {
            400: openai.BadRequestError,
            404: openai.NotFoundError,
            422: openai.UnprocessableEntityError,
            429: openai.RateLimitError,
            500: openai.InternalServerError,
            503: openai.InternalServerError,
        }
        for status, expected in classes.items():
            with self.assertRaises(expected) as raised:
                client().chat.completions.create(model=model, messages=ask(f"status {status}"))
            self.assertIn(f"asked for {status}", raised.exception.message)
            self.assertTrue(raised.exception.request_id)

    def test_raises_for_what_the_gateway_refuses(self):
        with self.assertRaises(openai.AuthenticationError):
            client("sk-nobody").chat.completions.create(model=CHAT, messages=ask("greet"))
        with self.assertRaises(openai.PermissionDeniedError):
            client(LIMITED_KEY).chat.completions.create(model=CHAT, messages=ask("greet"))
        with self.assertRaises(openai.BadRequestError):
            client().chat.completions.create(model=CHAT, messages=[])

    def test_reads_what_is_left_of_its_limits_from_answers_and_refusals(self):
        def stated(headers):
            return {name: headers[f"x-ratelimit-{name}"] for name in names}

        # On a slow machine, some seconds pass between calls.
        whole_window = r"^(1h0m0s|59m\d+s)$"
        names = [f"{what}-{of}" for what in ("limit", "remaining", "reset") for of in ("requests", "tokens")]
        own = client(RATED_KEYS["openai"])
        for left, tokens in (("1", "985"), ("0", "970")):
            raw = own.chat.completions.with_raw_response.create(model=CHAT, messages=ask("greet"))
            self.assertEqual(raw.parse().choices[0].message.content, GREETING)
            limits = {"limit-requests": "2", "remaining-requests": left}
            of_tokens = {"limit-tokens": "1000", "remaining-tokens": tokens}
            of_call = stated(raw.headers)
            for of in ("requests", "tokens"):
                self.assertRegex(of_call.pop(f"reset-{of}"), whole_window)
            self.assertEqual(of_call, {**limits, **of_tokens})
        with self.assertRaises(openai.RateLimitError) as raised:
            own.chat.completions.create(model=CHAT, messages=ask("greet"))
        refused = raised.exception.response.headers
        self.assertEqual(stated(refused)["remaining-requests"], "0")
        self.assertRegex(stated(refused)["reset-requests"], whole_window)
        self.assertGreater(int(refused["retry-after"]), 3_000)

    def test_asks_once_for_a_model_that_nobody_serves(self):
        with client(max_retries=4) as own:
            sent = []
            own._client.event_hooks["request"].append(sent.append)
            with self.assertRaises(openai.InternalServerError) as raised:
                own.chat.completions.create(model="nobody-serves-this", messages=ask("greet"))
        self.assertEqual(raised.exception.code, "model_not_found")
        self.assertEqual(len(sent), 1)

    @on_each_model
    def test_retries_what_may_pass(self, model):
        mark = word()
        answer = client(max_retries=2).chat.completions.create(
            model=model, messages=ask(f"status 429 once {mark}")
        )
        self.assertEqual(answer.choices[0].message.content, GREETING)
        self.assertEqual(len(requests_with(mark)), 2)

    @on_each_model
    def test_leaves_in_mid_stream_and_the_upstream_is_told(self, model):
        mark = word()
        with client().chat.completions.create(
            model=model, messages=ask(f"forever {mark}"), stream=True
        ) as stream:
            for count, _ in enumerate(stream):
                if count == 3:
                    break
        self.assertEqual([request["completed"] for request in ended_with(mark)], [False])


class Weather(pydantic.BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


FUNCTIONS = [{"type": "function", "name": "get_weather", "description": "Weather", "parameters": SCHEMA}]


class OpenAIResponses(unittest.TestCase):
    @on_each_model
    def test_gets_a_whole_response(self, model):
        response = client().responses.create(model=model, input="scenario: greet")
        self.assertEqual((response.status, response.output_text), ("completed", GREETING))
        self.assertEqual((response.usage.input_tokens, response.usage.output_tokens), (10, 5))
        self.assertTrue(response._request_id)

    @on_each_model
    def test_gets_a_stream_of_events(self, model):
        events = list(client().responses.create(model=model, input=ask("greet"), stream=True))
        text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        self.assertEqual(text, GREETING)
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        self.assertEqual(events[-1].type, "response.completed")
        self.assertEqual(events[-1].response.usage.total_tokens, 15)

    @on_each_model
    def test_assembles_a_stream_by_its_helper(self, model):
        with client().responses.stream(model=model, input=ask("greet")) as stream:
            self.assertEqual(stream.get_final_response().output_text, GREETING)

    @on_each_model
    def test_calls_a_function_and_gives_its_output(self, model):
        first = client().responses.create(model=model, input=ask("tool"), tools=FUNCTIONS)
        call = first.output[0]
        self.assertEqual((call.type, call.name, json.loads(call.arguments)), ("function_call", "get_weather", TOOL_INPUT))
        output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        second = client().responses.create(
            model=model, input=[*ask("tool"), *first.output, output], tools=FUNCTIONS
        )
        self.assertEqual(second.output_text, AFTER_TOOL)

    @on_each_model
    def test_gets_a_function_call_from_a_stream(self, model):
        with client().responses.stream(model=model, input=ask("tool"), tools=FUNCTIONS) as stream:
            final = stream.get_final_response()
        self.assertEqual(json.loads(final.output[0].arguments), TOOL_INPUT)

    @on_each_model
    def test_parses_an_answer_that_follows_a_model(self, model):
        mark = word()
        response = client().responses.parse(model=model, input=ask(f"structured {mark}"), text_format=Weather)
        self.assertEqual(response.output_parsed, Weather(city="Bern", degrees=21))
        self.assertIn('"degrees"', requests_with(mark)[0]["text"])

    @on_each_model
    def test_raises_the_class_of_each_refusal(self, model):
        classes = {400: openai.BadRequestError, 429: openai.RateLimitError, 500: openai.InternalServerError}
        for status, expected in classes.items():
            with self.assertRaises(expected) as raised:
                client().responses.create(model=model, input=f"scenario: status {status}")
            self.assertIn(f"asked for {status}", raised.exception.message)

    @on_each_model
    def test_leaves_in_mid_stream_and_the_upstream_is_told(self, model):
        mark = word()
        with client().responses.create(model=model, input=f"scenario: forever {mark}", stream=True) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    break
        self.assertEqual([request["completed"] for request in ended_with(mark)], [False])


if __name__ == "__main__":
    unittest.main()
