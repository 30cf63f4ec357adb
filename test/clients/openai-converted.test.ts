import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { MODEL, MODES, type Mode, fixtureOfBoth } from '../conversion/fixture.ts'

let fixture: Fixture
let client: OpenAI
beforeAll(async () => {
  fixture = await fixtureOfBoth()
  client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
})
afterAll(() => fixture?.close())

const TEXT = 'Hello there, friend.'
const THOUGHT = 'A greeting is due.'
const CALLS = [
  { id: 'call_1', name: 'weather', input: '{"city":"Bern","n":9007199254740993}' },
  { id: 'call_2', name: 'weather', input: '{"city":"Basel"}' },
]
const COUNTS = {
  input_tokens: 20,
  cache_read_input_tokens: 70,
  cache_creation_input_tokens: 10,
  output_tokens: 7,
}
const USAGE = usageText(100, 7, 70)
const messages = [{ role: 'user' as const, content: 'hi' }]
const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: { type: 'object' } } }]

/** Scripts the upstream's response. Returns the model to request. */
function scriptModel(mode: Mode, what: 'text' | 'thoughts' | 'calls', stream: boolean): string {
  const calls = what === 'calls' ? CALLS : []
  if (mode === 'native') {
    const said = {
      ...(what !== 'calls' && { text: TEXT }),
      ...(what === 'thoughts' && { thoughts: THOUGHT }),
      calls,
      usage: USAGE,
    }
    fixture.upstream.script(MODEL.chat, stream ? streamedChat(said) : wholeChat(said))
    return MODEL.chat
  }
  const blocks = [
    ...(what === 'thoughts' ? [{ thinking: THOUGHT, signature: 'c2ln' }] : []),
    ...(what === 'calls' ? calls : [{ text: TEXT }]),
  ]
  const answer = { counts: COUNTS }
  fixture.upstream.script(
    MODEL.messages,
    stream ? streamedMessage(blocks, answer) : wholeMessage(blocks, answer),
  )
  return MODEL.messages
}

describe.each(MODES)('the official OpenAI client, %s', (mode) => {
  test('the OpenAI client gets a whole response with its usage', async () => {
    const { data, request_id: id } = await client.chat.completions
      .create({ model: scriptModel(mode, 'text', false), messages })
      .withResponse()
    expect(data.choices).toHaveLength(1)
    expect(data.choices[0]).toMatchObject({
      index: 0,
      finish_reason: 'stop',
      message: { role: 'assistant', content: TEXT },
    })
    expect(data.usage).toMatchObject({ prompt_tokens: 100, completion_tokens: 7, total_tokens: 107 })
    expect(data.usage?.prompt_tokens_details?.cached_tokens).toBe(70)
    expect(id).toBeTypeOf('string')
  })

  test.each([true, false])(
    'the OpenAI client gets a stream, with usage only if it requests it (include_usage: %j)',
    async (include) => {
      const stream = await client.chat.completions.create({
        model: scriptModel(mode, 'thoughts', true),
        messages,
        stream: true,
        stream_options: { include_usage: include },
      })
      let text = ''
      let thoughts = ''
      const roles: unknown[] = []
      const finishes: unknown[] = []
      const usages: unknown[] = []
      for await (const chunk of stream) {
        const [choice] = chunk.choices
        const delta = choice?.delta as
          | { role?: string; content?: string; reasoning_content?: string }
          | undefined
        text += delta?.content ?? ''
        thoughts += delta?.reasoning_content ?? ''
        if (delta?.role) roles.push(delta.role)
        if (choice?.finish_reason) finishes.push(choice.finish_reason)
        if (chunk.usage) usages.push(chunk.usage)
      }
      expect({ text, thoughts: thoughts.trim(), roles, finishes }).toEqual({
        text: TEXT,
        thoughts: THOUGHT,
        roles: ['assistant'],
        finishes: ['stop'],
      })
      expect(usages).toHaveLength(include ? 1 : 0)
      if (include)
        expect(usages[0]).toMatchObject({ prompt_tokens: 100, completion_tokens: 7, total_tokens: 107 })
    },
  )

  test('the OpenAI client gets the tool calls of a whole response', async () => {
    const model = scriptModel(mode, 'calls', false)
    const { choices } = await client.chat.completions.create({
      model,
      messages,
      tools,
      tool_choice: 'required',
    })
    expect(choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { content: null } })
    expect(choices[0]?.message.tool_calls).toEqual(
      CALLS.map(({ id, name, input }) => ({ id, type: 'function', function: { name, arguments: input } })),
    )
  })

  test('the OpenAI client gets tool calls through its stream helper', async () => {
    const runner = client.chat.completions.stream({
      model: scriptModel(mode, 'calls', true),
      messages,
      tools,
    })
    const done: string[] = []
    runner.on('tool_calls.function.arguments.done', ({ arguments: text }) => void done.push(text))
    const final = await runner.finalChatCompletion()
    // The helper reports a call only when the next one begins.
    expect(done.slice(-CALLS.length)).toEqual(CALLS.map(({ input }) => input))
    expect(final.choices[0]?.finish_reason).toBe('tool_calls')
    expect(final.choices[0]?.message.tool_calls).toMatchObject(
      CALLS.map(({ id, name, input }) => ({ id, type: 'function', function: { name, arguments: input } })),
    )
  })

  test("the OpenAI client's tool runner calls its tools until the model gives a final answer", async () => {
    const model = scriptModel(mode, 'calls', false)
    const lane = mode === 'native' ? MODEL.chat : MODEL.messages
    fixture.upstream.script(
      lane,
      mode === 'native' ? wholeChat({ calls: CALLS }) : wholeMessage(CALLS),
      mode === 'native' ? wholeChat({ text: TEXT }) : wholeMessage([{ text: TEXT }]),
    )
    const asked: string[] = []
    const runner = client.chat.completions.runTools({
      model,
      messages,
      tools: [
        {
          type: 'function',
          function: {
            name: 'weather',
            description: 'The weather in a town',
            parameters: { type: 'object', properties: { city: { type: 'string' } } },
            parse: JSON.parse,
            function: (input: { city: string }) => {
              asked.push(input.city)
              return `sunny in ${input.city}`
            },
          },
        },
      ],
    })
    expect(await runner.finalContent()).toBe(TEXT)
    expect(asked).toEqual(['Bern', 'Basel'])
    const second = JSON.parse(fixture.upstream.received(lane)[1]?.text ?? '')
    const results = mode === 'native' ? second.messages.slice(-2) : second.messages.at(-1).content
    expect(results).toMatchObject(
      CALLS.map(({ id }, i) =>
        mode === 'native'
          ? { role: 'tool', tool_call_id: id, content: `sunny in ${asked[i]}` }
          : { type: 'tool_result', tool_use_id: id, content: `sunny in ${asked[i]}` },
      ),
    )
  })

  test("the OpenAI client raises APIError when the upstream's stream breaks off in the middle", async () => {
    const model = scriptModel(mode, 'text', true)
    const whole = mode === 'native' ? streamedChat({ text: TEXT }) : streamedMessage([{ text: TEXT }])
    // Before the finish reason: with it, the response would be complete.
    const begun = whole.frames?.slice(0, mode === 'native' ? 2 : 4) ?? []
    fixture.upstream.script(model, { ...whole, frames: begun, ending: 'reset' })
    const stream = await client.chat.completions.create({ model, messages, stream: true })
    let text = ''
    const read = async (): Promise<void> => {
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
    }
    await expect(read()).rejects.toBeInstanceOf(OpenAI.APIError)
    expect(TEXT.startsWith(text)).toBe(true)
    expect(text).not.toBe('')
  })
})
