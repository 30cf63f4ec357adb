import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { streamedGemini, wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { streamedResponse, wholeResponse } from '../fixtures/responses-behaviour.ts'

const PROTOCOLS = ['chat', 'messages', 'responses', 'gemini'] as const
type Protocol = (typeof PROTOCOLS)[number]
const ACTIONS = ['block', 'redact', 'replace', 'flag'] as const
const FORMS = ['whole', 'streamed'] as const

const CODE = 'code-4711-x'
const match = { regex: 'code-[0-9]+-x' }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced([...PROTOCOLS]),
    channels: PROTOCOLS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
    guards: [
      ...ACTIONS.flatMap((action) => [
        { name: `${action}-text`, do: action, match, where: ['output'], tokens: [`token-${action}text`] },
        {
          name: `${action}-args`,
          do: action,
          match,
          where: ['tool_arguments'],
          tokens: [`token-${action}args`],
        },
      ]),
      { name: 'watch', do: 'block', mode: 'monitor', match, tokens: ['token-watch'] },
      { name: 'swap', do: 'replace', match, where: ['input'], tokens: ['token-swap'] },
    ],
    users: [
      ROOT,
      user(2, 'ann', [
        ...ACTIONS.flatMap((action) => [token(`${action}text`), token(`${action}args`)]),
        ...['watch', 'swap', 'plain'].map((name) => token(name)),
      ]),
    ],
  }))
})
afterAll(() => fixture?.close())

interface Content {
  readonly text: string
  /** The arguments of a tool call, as JSON. */
  readonly input?: string
}

/** What an upstream answers, by its protocol. */
function answerOf(protocol: Protocol, form: (typeof FORMS)[number], { text, input }: Content): Behaviour {
  const calls = input === undefined ? [] : [{ id: 'call_1', name: 'send', input }]
  const blocks = [{ text }, ...calls]
  const gemini = { text, calls: calls.map((one) => ({ name: one.name, args: one.input })) }
  const answers = {
    chat: { whole: wholeChat({ text, calls }), streamed: streamedChat({ text, calls }) },
    messages: { whole: wholeMessage(blocks), streamed: streamedMessage(blocks) },
    responses: { whole: wholeResponse({ text, calls }), streamed: streamedResponse({ text, calls }) },
    gemini: { whole: wholeGemini(gemini), streamed: streamedGemini(gemini) },
  }
  return answers[protocol][form]
}

/** A request with a tool, in the client's dialect. */
function requestOf(
  client: Protocol,
  model: Protocol,
  form: (typeof FORMS)[number],
  text = 'hi',
): [string, object] {
  const stream = form === 'streamed' ? { stream: true } : {}
  const schema = { type: 'object', properties: { to: { type: 'string' } } }
  switch (client) {
    case 'chat':
      return [
        '/v1/chat/completions',
        {
          model,
          ...stream,
          messages: [{ role: 'user', content: text }],
          tools: [{ type: 'function', function: { name: 'send', parameters: schema } }],
        },
      ]
    case 'messages':
      return [
        '/v1/messages',
        {
          model,
          max_tokens: 50,
          ...stream,
          messages: [{ role: 'user', content: text }],
          tools: [{ name: 'send', input_schema: schema }],
        },
      ]
    case 'responses':
      return [
        '/v1/responses',
        { model, ...stream, input: text, tools: [{ type: 'function', name: 'send', parameters: schema }] },
      ]
    case 'gemini':
      return [
        `/v1beta/models/${model}:${form === 'streamed' ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
        {
          contents: [{ role: 'user', parts: [{ text }] }],
          tools: [{ functionDeclarations: [{ name: 'send', parameters: schema }] }],
        },
      ]
  }
}

interface Given {
  readonly status: number
  readonly raw: string
  readonly text: string
  /** Arguments of the tool call, as a value. */
  readonly args: unknown
  readonly finish: string | undefined
  readonly verdicts: string | undefined
}

async function ask(
  client: Protocol,
  to: Protocol,
  form: (typeof FORMS)[number],
  key: string,
  content: Content,
  text?: string,
): Promise<Given> {
  fixture.upstream.script(to, answerOf(to, form, content))
  const [path, body] = requestOf(client, to, form, text)
  const answer = await call(fixture.gateway.url, JSON.stringify(body), {
    path,
    key,
    headers: { 'x-goog-api-key': `sk-${key}` },
  })
  const verdicts = answer.headers?.['x-gateway-guards']
  return {
    status: answer.status,
    raw: answer.text,
    ...readers[client](answer.text, form),
    verdicts: verdicts === undefined ? undefined : String(verdicts),
  }
}

type Read = Pick<Given, 'text' | 'args' | 'finish'>
type Loose = { readonly [name: string]: any } // eslint-disable-line

function eventsOf(text: string): Loose[] {
  return text.split(/\r?\n\r?\n/).flatMap((frame) => {
    const data = frame
      .split(/\r?\n/)
      .filter((line) => line.startsWith('data:'))
      .map((line) => line.slice(5).trim())
      .join('')
    return data === '' || data === '[DONE]' ? [] : [JSON.parse(data) as Loose]
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text === '' ? undefined : text
  }
}

const readers: Record<Protocol, (text: string, form: string) => Read> = {
  chat(text, form) {
    const choices =
      form === 'whole'
        ? [(JSON.parse(text) as Loose)['choices'][0]]
        : eventsOf(text).flatMap((event) => event['choices'] ?? [])
    const parts = choices.map((choice: Loose) => choice['message'] ?? choice['delta'])
    return {
      text: parts.map((part: Loose) => part['content'] ?? '').join(''),
      args: parsed(
        parts
          .flatMap((part: Loose) => part['tool_calls'] ?? [])
          .map((one: Loose) => one['function']['arguments'] ?? '')
          .join(''),
      ),
      finish: choices
        .map((choice: Loose) => choice['finish_reason'])
        .findLast((one: unknown) => typeof one === 'string'),
    }
  },
  messages(text, form) {
    if (form === 'whole') {
      const { content, stop_reason } = JSON.parse(text) as Loose
      return {
        text: content.map((one: Loose) => one['text'] ?? '').join(''),
        args: content.find((one: Loose) => one['type'] === 'tool_use')?.['input'],
        finish: stop_reason,
      }
    }
    const deltas = eventsOf(text).flatMap(({ delta }) => delta ?? [])
    return {
      text: deltas.map((one: Loose) => one['text'] ?? '').join(''),
      args: parsed(deltas.map((one: Loose) => one['partial_json'] ?? '').join('')),
      finish: deltas
        .map((one: Loose) => one['stop_reason'])
        .findLast((one: unknown) => typeof one === 'string'),
    }
  },
  responses(text, form) {
    const events = form === 'whole' ? [] : eventsOf(text)
    const response = form === 'whole' ? (JSON.parse(text) as Loose) : events.at(-1)?.['response']
    const finish = response?.['incomplete_details']?.['reason'] ?? response?.['status']
    const items: Loose[] = response?.['output'] ?? []
    const whole = {
      text: items
        .flatMap((one) => one['content'] ?? [])
        .map((one: Loose) => one['text'] ?? '')
        .join(''),
      args: parsed(items.map((one) => one['arguments'] ?? '').join('')),
      finish,
    }
    if (form === 'whole') return whole
    const deltasOf = (type: string): string =>
      events
        .filter((one) => one['type'] === type)
        .map((one) => one['delta'])
        .join('')
    const streamed = {
      text: deltasOf('response.output_text.delta'),
      args: parsed(deltasOf('response.function_call_arguments.delta')),
      finish,
    }
    // What the pieces say is what the last event says.
    if (finish === 'completed') expect(streamed).toEqual(whole)
    const numbers = events.map((one) => one['sequence_number'])
    expect(numbers).toEqual(numbers.map((_, index) => index))
    return streamed
  },
  gemini(text, form) {
    const events = form === 'whole' ? [JSON.parse(text) as Loose] : eventsOf(text)
    const candidates = events.flatMap((event) => event['candidates'] ?? [])
    const parts = candidates.flatMap((one: Loose) => one['content']?.['parts'] ?? [])
    return {
      text: parts.map((one: Loose) => one['text'] ?? '').join(''),
      args: parts.find((one: Loose) => one['functionCall'])?.['functionCall']['args'],
      finish: candidates
        .map((one: Loose) => one['finishReason'])
        .findLast((one: unknown) => typeof one === 'string'),
    }
  },
}

/** How a refusal ends, by the dialect of the client. */
const REFUSED = { chat: 'content_filter', messages: 'refusal', responses: 'content_filter', gemini: 'SAFETY' }
const ROADS = PROTOCOLS.flatMap((client) =>
  PROTOCOLS.flatMap((to) => FORMS.map((form) => [client, to, form] as const)),
)
const SAID = `It is ${CODE}, yes: "${CODE}"`
const ARGS = { to: `a "${CODE}"\n`, x: 1 }

/** Whether an event has a piece of the text, and whether it ends the text, by the dialect of the client. */
const ORDER: Record<Protocol, { piece: (event: Loose) => unknown; end: (event: Loose) => unknown }> = {
  chat: {
    piece: ({ choices }) => choices?.[0]?.['delta']?.['content'],
    end: ({ choices }) => choices?.[0]?.['finish_reason'],
  },
  messages: {
    piece: ({ delta }) => delta?.['text'],
    end: ({ type }) => type === 'content_block_stop',
  },
  responses: {
    piece: ({ type }) => type === 'response.output_text.delta',
    end: ({ type }) => type === 'response.output_text.done',
  },
  gemini: {
    piece: ({ candidates }) => candidates?.[0]?.['content']?.['parts']?.[0]?.['text'],
    end: ({ candidates }) => candidates?.[0]?.['finishReason'],
  },
}

describe.each(PROTOCOLS.flatMap((client) => PROTOCOLS.map((to) => [client, to] as const)))(
  'a stream of a %s client from a %s channel',
  (client, to) => {
    test('that ends like the beginning of a match is sent in full, before its end', async () => {
      const text = 'It is code-47'
      const given = await ask(client, to, 'streamed', 'redacttext', { text })
      expect([given.text, given.status]).toEqual([text, 200])
      const events = eventsOf(given.raw)
      const order = ORDER[client]
      const last = events.findLastIndex((event) => order.piece(event))
      const first = events.findIndex((event) => order.end(event))
      expect(last).toBeGreaterThan(0)
      expect(last).toBeLessThanOrEqual(first)
    })
  },
)

describe.each(ROADS)('a %s client and a %s channel, %s', (client, to, form) => {
  test('a redacted answer is what the model said without the matches', async () => {
    const given = await ask(client, to, form, 'redacttext', { text: SAID })
    expect(given.text).toBe('It is [REDACTED], yes: "[REDACTED]"')
    expect(given.raw).not.toContain(CODE)
    expect(given.verdicts).toBe(form === 'whole' ? 'redact-text=redacted;count=2' : undefined)
  })

  test('a blocked answer ends as refusals of its dialect do, with nothing of the match', async () => {
    const given = await ask(client, to, form, 'blocktext', { text: SAID })
    expect([given.status, given.finish]).toEqual([200, REFUSED[client]])
    expect(given.raw).not.toContain(CODE)
    expect(given.raw).not.toContain('yes')
    expect(['', 'It is ']).toContain(given.text)
  })

  test('a flagged answer is what the model said', async () => {
    const given = await ask(client, to, form, 'flagtext', { text: SAID })
    expect(given.text).toBe(SAID)
  })

  test('redacted arguments are JSON without the match', async () => {
    const given = await ask(client, to, form, 'redactargs', { text: 'ok', input: JSON.stringify(ARGS) })
    expect(given.args).toEqual({ to: 'a "[REDACTED]"\n', x: 1 })
    expect(given.raw).not.toContain(CODE)
  })

  test('blocked arguments end the answer as a refusal', async () => {
    const given = await ask(client, to, form, 'blockargs', { text: 'ok', input: JSON.stringify(ARGS) })
    expect(given.finish).toBe(REFUSED[client])
    expect(given.raw).not.toContain(CODE)
  })

  test('a replaced value is put back in the text and in the arguments', async () => {
    fixture.upstream.script(to, answerOf(to, form, { text: 'x' }))
    const [path, body] = requestOf(client, to, form, `mail ${CODE}`)
    await call(fixture.gateway.url, JSON.stringify(body), {
      path,
      key: 'swap',
      headers: { 'x-goog-api-key': 'sk-swap' },
    })
    const sent = fixture.upstream.received(to)[0]?.text ?? ''
    const mark = /\[\[[A-Z0-9_-]+_[0-9a-f]{8}\]\]/.exec(sent)?.[0] ?? ''
    expect(sent).not.toContain(CODE)
    const content = { text: `To ${mark}.`, input: JSON.stringify({ to: mark }) }
    const given = await ask(client, to, form, 'swap', content, `mail ${CODE}`)
    expect([given.text, given.args]).toEqual([`To ${CODE}.`, { to: CODE }])
    const stranger = await ask(client, to, form, 'swap', content, 'no value')
    expect(stranger.text).toBe(`To ${mark}.`)
  })

  test('in monitor mode nothing changes', async () => {
    const given = await ask(client, to, form, 'watch', { text: SAID, input: JSON.stringify(ARGS) })
    expect([given.text, given.args]).toEqual([SAID, ARGS])
  })
})

test('arguments of the former function calls are guarded across events', async () => {
  const chunk = (delta: object): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`
  const pieces = ['{"to":"co', 'de-47', '11-x"}'].map((text) => chunk({ function_call: { arguments: text } }))
  const end =
    'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}\n\ndata: [DONE]\n\n'
  fixture.upstream.script('chat', {
    kind: 'stream',
    frames: [chunk({ role: 'assistant', function_call: { name: 'f', arguments: '' } }), ...pieces, end],
    ending: 'no done',
  })
  const answer = await call(
    fixture.gateway.url,
    JSON.stringify({ model: 'chat', stream: true, messages: [{ role: 'user', content: 'hi' }] }),
    { path: '/v1/chat/completions', key: 'redactargs' },
  )
  const given = eventsOf(answer.text)
    .flatMap((event) => event['choices'] ?? [])
    .map((choice: Loose) => choice['delta']['function_call']?.['arguments'] ?? '')
    .join('')
  expect(JSON.parse(given)).toEqual({ to: '[REDACTED]' })
})
