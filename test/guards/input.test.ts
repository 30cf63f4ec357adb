import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall } from '../fixtures/form.ts'
import { wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { cohereAnswer, scored } from '../fixtures/rerank-behaviour.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'
import type { Behaviour } from '../fixtures/behaviour.ts'

const PROTOCOLS = ['chat', 'messages', 'responses', 'gemini', 'rerank'] as const
type Protocol = (typeof PROTOCOLS)[number]
const PLACES = ['input', 'tool_results', 'tool_arguments'] as const
type Place = (typeof PLACES)[number]
const ACTIONS = ['block', 'redact', 'replace', 'flag'] as const

/** What the guards of this file look for. */
const CODE = 'code-4711-x'
const guard = (name: string, fields: Record<string, unknown>): Record<string, unknown> => ({
  name,
  do: 'redact',
  match: { regex: 'code-[0-9]+-x' },
  tokens: [`token-${name}`],
  ...fields,
})
const guards = [
  ...PLACES.flatMap((place) =>
    ACTIONS.map((action) => guard(`${action}-${place}`.replaceAll('_', '-'), { do: action, where: [place] })),
  ),
  guard('watch', { do: 'block', mode: 'monitor' }),
  guard('everything', { do: 'redact', with: '***' }),
  guard('group-only', { do: 'block', tokens: ['token-grouped'], groups: ['elsewhere'] }),
  guard('added', { do: 'block', tokens: ['nobody'] }),
  guard('for-model', { do: 'block', tokens: undefined, models: ['guarded'] }),
  guard('number', { match: { regex: '4711[0-9]{4}' }, where: ['tool_arguments', 'tool_results'] }),
  guard('never', { do: 'block', tokens: ['token-never'], sample: 0 }),
]
const NAMES = [...guards.map(({ name }) => String(name)), 'grouped', 'plain']

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    groups: { special: { guards: ['added'] } },
    models: priced([...PROTOCOLS, 'guarded', 'grouped']),
    channels: [
      ...PROTOCOLS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
      channel('guarded', upstream.baseUrl('guarded'), {}),
      channel('grouped', upstream.baseUrl('grouped'), { groups: ['special'] }),
    ],
    guards,
    users: [
      ROOT,
      user(2, 'ann', [
        ...NAMES.map((name) => token(keyOf(name), { name: `token-${name}` })),
        token('withadded', { guards: ['added'] }),
        token('special', { group: 'special' }),
      ]),
    ],
  }))
})
afterAll(() => fixture?.close())

function keyOf(name: string): string {
  return name.replaceAll('-', '')
}

const ANSWERS: Readonly<Record<string, Behaviour>> = {
  messages: wholeMessage([{ text: 'hi' }]),
  responses: wholeResponse({ text: 'hi' }),
  gemini: wholeGemini(),
  rerank: cohereAnswer(scored(1)),
}

async function post(path: string, body: string | Buffer, key: string, lane: string) {
  fixture.upstream.script(lane, ANSWERS[lane] ?? { kind: 'whole' })
  const answer = await call(fixture.gateway.url, body, {
    path,
    key,
    headers: { 'x-goog-api-key': `sk-${key}` },
  })
  return { answer, sent: fixture.upstream.received(lane).map(({ text }) => text) }
}

/** Requests of each dialect with a text at each place; the numbers and spaces show any other change of the bytes. */
const REQUESTS: Readonly<
  Record<Exclude<Protocol, 'rerank'>, (text: string, place: Place, model: string) => [string, string]>
> = {
  chat: (text, place, model) => [
    '/v1/chat/completions',
    `{"model":"${model}",  "messages":[{"role":"system","content":"${at('input', place, text)}"},{"role":"user","content":[{"type":"text","text":"${at('input', place, text)}"}]},` +
      `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\\"n\\": 1.50,\\"to\\":\\"${at('tool_arguments', place, text)}\\"}"}}]},` +
      `{"role":"tool","tool_call_id":"c1","content":"${at('tool_results', place, text)}"}],"x_unknown":9007199254740993}`,
  ],
  messages: (text, place, model) => [
    '/v1/messages',
    `{"model":"${model}","max_tokens":5,  "system":"${at('input', place, text)}","messages":[{"role":"user","content":"${at('input', place, text)}"},` +
      `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{"n": 1.50,"to":"${at('tool_arguments', place, text)}"}}]},` +
      `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"${at('tool_results', place, text)}"}]}]}],"x_unknown":9007199254740993}`,
  ],
  responses: (text, place, model) => [
    '/v1/responses',
    `{"model":"${model}",  "instructions":"${at('input', place, text)}","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"${at('input', place, text)}"}]},` +
      `{"type":"function_call","call_id":"c1","name":"f","arguments":"{\\"n\\": 1.50,\\"to\\":\\"${at('tool_arguments', place, text)}\\"}"},` +
      `{"type":"function_call_output","call_id":"c1","output":"${at('tool_results', place, text)}"}],"x_unknown":9007199254740993}`,
  ],
  gemini: (text, place, model) => [
    `/v1beta/models/${model}:generateContent`,
    `{  "systemInstruction":{"parts":[{"text":"${at('input', place, text)}"}]},"contents":[{"role":"user","parts":[{"text":"${at('input', place, text)}"}]},` +
      `{"role":"model","parts":[{"functionCall":{"name":"f","args":{"n": 1.50,"to":"${at('tool_arguments', place, text)}"}},"thoughtSignature":"c2ln"}]},` +
      `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"r":"${at('tool_results', place, text)}"}}}]}],"x_unknown":9007199254740993}`,
  ],
}

function at(here: Place, place: Place, text: string): string {
  return here === place ? `say ${text} now` : 'plain'
}

const CLIENTS = ['chat', 'messages', 'responses', 'gemini'] as const

describe.each(CLIENTS)('a %s client', (client) => {
  const request = REQUESTS[client]

  describe.each(PLACES)('at %s', (place) => {
    const key = (action: string): string => keyOf(`${action}-${place}`.replaceAll('_', ''))

    test('a request that a guard blocks is a 400 that names the guard, and nothing is sent upstream', async () => {
      const [path, body] = request(CODE, place, client)
      const { answer, sent } = await post(path, body, key('block'), client)
      const name = `block-${place.replaceAll('_', '-')}`
      expect(answer.status).toBe(400)
      expect(answer.text).toContain(`the guard \\"${name}\\" refused this request`)
      if (client !== 'gemini') expect(answer.text).toContain('"guard_blocked"')
      expect(answer.headers['x-gateway-guards']).toMatch(new RegExp(`^${name}=blocked;count=[12]$`))
      expect(sent).toEqual([])
    })

    test('a request text that a guard redacts is sent upstream without the match, and with all other bytes unchanged', async () => {
      const [path, body] = request(CODE, place, client)
      const { answer, sent } = await post(path, body, key('redact'), client)
      expect(answer.status).toBe(200)
      expect(answer.headers['x-gateway-guards']).toMatch(/=redacted;count=[12]$/)
      const [, plain] = request('[REDACTED]', place, client)
      expect(sent).toEqual([plain])
    })

    test('a match that a guard replaces in a request is sent upstream as a placeholder, always the same one', async () => {
      const [path, body] = request(CODE, place, client)
      const [first] = (await post(path, body, key('replace'), client)).sent
      const [again] = (await post(path, body, key('replace'), client)).sent
      const found = /\[\[[A-Z0-9_-]+_[0-9a-f]{8}\]\]/.exec(first ?? '')?.[0]
      expect(found).toBeDefined()
      expect(again).toBe(first)
      const [, expected] = request(found ?? '', place, client)
      expect(first).toBe(expected)
    })

    test('a request text that a guard only flags is sent upstream unchanged', async () => {
      const [path, body] = request(CODE, place, client)
      const { answer, sent } = await post(path, body, key('flag'), client)
      expect(answer.headers['x-gateway-guards']).toMatch(/=flagged;count=[12]$/)
      expect(sent).toEqual([body])
    })

    test('a guard that checks only one kind of content of a request, such as tool results, does not check other kinds', async () => {
      for (const other of PLACES.filter((one) => one !== place)) {
        const [path, body] = request(CODE, other, client)
        const { answer, sent } = await post(path, body, key('block'), client)
        expect(answer.headers['x-gateway-guards']).toMatch(/=allowed;count=0$/)
        expect(sent).toEqual([body])
      }
    })
  })

  test.each(CLIENTS.filter((one) => one !== client))(
    'a guard also checks a request that is converted to %s',
    async (to) => {
      for (const place of PLACES) {
        const [path, body] = request(CODE, place, to)
        const { answer, sent } = await post(path, body, 'everything', to)
        expect(answer.status, answer.text).toBe(200)
        expect(sent).toHaveLength(1)
        expect(sent[0]).not.toContain(CODE)
        expect(sent[0]).toContain('***')
      }
    },
  )

  test('a guard in monitor mode flags a match in a request, and changes nothing', async () => {
    const [path, body] = request(CODE, 'input', client)
    const { answer, sent } = await post(path, body, 'watch', client)
    expect(answer.headers['x-gateway-guards']).toBe('watch=flagged;count=2')
    expect(sent).toEqual([body])
  })

  test("a guard finds a match that the request's JSON writes with escapes", async () => {
    const [path, body] = request('\\u0063ode-4711-\\u0078', 'input', client)
    const { sent } = await post(path, body, 'everything', client)
    expect(sent[0]).toContain('say *** now')
  })
})

test('a request with messages at the endpoint for completions is checked as one of chat', async () => {
  const messages = [
    { role: 'user', content: `ask ${CODE}` },
    { role: 'tool', tool_call_id: 'c1', content: `say ${CODE}` },
  ]
  const body = JSON.stringify({ model: 'chat', messages })
  const { sent } = await post('/v1/completions', body, keyOf('redact-tool-results'), 'chat')
  expect(sent.map((text) => (JSON.parse(text) as { messages: unknown }).messages)).toEqual([
    [messages[0], { ...messages[1], content: 'say [REDACTED]' }],
  ])
})

test('a guard finds its match anywhere in a long text', async () => {
  for (const before of [16_380, 16_390, 100_000]) {
    const text = `${'x '.repeat(before / 2)}${CODE}${' y'.repeat(20_000)}`
    const body = JSON.stringify({ model: 'chat', messages: [{ role: 'user', content: text }] })
    const { sent } = await post('/v1/chat/completions', body, 'everything', 'chat')
    expect(sent).toEqual([body.replace(CODE, '***')])
    const { answer } = await post('/v1/chat/completions', body, 'blockinput', 'chat')
    expect([answer.status, answer.headers['x-gateway-guards']]).toEqual([400, 'block-input=blocked;count=1'])
  }
})

describe('other endpoints', () => {
  const OTHERS = [
    ['/v1/completions', 'chat', { model: 'chat', prompt: `a ${CODE}` }],
    ['/v1/embeddings', 'chat', { model: 'chat', input: ['x', `a ${CODE}`] }],
    ['/v1/moderations', 'chat', { model: 'chat', input: `a ${CODE}` }],
    ['/v1/rerank', 'rerank', { model: 'rerank', query: 'q', documents: ['x', `a ${CODE}`] }],
    ['/v1/images/generations', 'chat', { model: 'chat', prompt: `a ${CODE}` }],
    ['/v1/audio/speech', 'chat', { model: 'chat', voice: 'v', input: `a ${CODE}` }],
    [
      '/v1/messages/count_tokens',
      'messages',
      { model: 'messages', messages: [{ role: 'user', content: CODE }] },
    ],
  ] as const

  test.each(OTHERS)('a guard checks requests at %s', async (path, lane, body) => {
    const { answer } = await post(path, JSON.stringify(body), 'blockinput', lane)
    expect([answer.status, fixture.upstream.received(lane)]).toEqual([400, []])
    expect(answer.text).toContain('guard_blocked')
    const { sent } = await post(path, JSON.stringify(body), 'everything', lane)
    expect(sent[0]).toContain('***')
    expect(sent[0]).not.toContain(CODE)
  })

  test('a guard checks the fields of a form, and leaves files unchanged that are no texts', async () => {
    const picture = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.from(CODE)])
    const body = formBytes([
      { name: 'model', content: 'chat' },
      { name: 'prompt', content: `draw ${CODE}` },
      { name: 'image', filename: 'a.png', type: 'image/png', content: picture },
    ])
    fixture.upstream.script('chat', { kind: 'whole', body: '{"data":[{"b64_json":"aGk="}]}' })
    const answer = await call(fixture.gateway.url, body, formCall('/v1/images/edits', 'everything', body))
    expect(answer.headers['x-gateway-guards']).toBe('everything=redacted;count=1')
    expect(answer.status, answer.text).toBe(200)
    const [sent] = fixture.upstream.received('chat')
    expect(sent?.text).toContain('draw ***')
    expect(sent?.body.includes(Buffer.concat([Buffer.from('\r\n\r\n'), picture]))).toBe(true)
  })
})

describe('scopes', () => {
  const body = (model: string): string =>
    JSON.stringify({ model, messages: [{ role: 'user', content: CODE }] })
  const chat = async (key: string, model = 'chat'): Promise<FullResponse> =>
    (await post('/v1/chat/completions', body(model), key, model)).answer

  test('a call to which no guard applies has no header x-gateway-guards', async () => {
    const answer = await chat('plain')
    expect([answer.status, answer.headers['x-gateway-guards']]).toEqual([200, undefined])
  })

  test('a guard with several scopes applies only to calls that fit all of them', async () => {
    expect((await chat('grouped')).status).toBe(200)
  })

  test('a guard with a model as its scope checks only the calls of that model', async () => {
    expect((await chat('plain', 'guarded')).status).toBe(400)
  })

  test("a guard that an API key names checks the key's calls, whatever the scopes of the guard", async () => {
    const answer = await chat('withadded')
    expect([answer.status, answer.headers['x-gateway-guards']]).toEqual([400, 'added=blocked;count=1'])
  })

  test("a guard that a group names checks the group's calls, whatever the scopes of the guard", async () => {
    const answer = await chat('special', 'grouped')
    expect([answer.status, answer.headers['x-gateway-guards']]).toEqual([400, 'added=blocked;count=1'])
  })

  test('a guard with a sample of 0 checks no call', async () => {
    const answer = await chat('never')
    expect([answer.status, answer.headers['x-gateway-guards']]).toEqual([200, undefined])
  })
})

test.each<[string, string, string]>([
  [
    'a property that is called name',
    '/v1/chat/completions',
    `{"model":"chat","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"name":{"type":"string","description":"${CODE}"}}}}}]}`,
  ],
  [
    'a property that is called required',
    '/v1/messages',
    `{"model":"messages","max_tokens":5,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f","input_schema":{"type":"object","properties":{"required":{"type":"string","description":"${CODE}"}}}}]}`,
  ],
  [
    'a message that states the type of signed reasoning',
    '/v1/chat/completions',
    `{"model":"chat","messages":[{"role":"user","type":"reasoning","signature":"abc","content":"${CODE}"}]}`,
  ],
  [
    'a message that says it is a thought',
    '/v1/chat/completions',
    `{"model":"chat","messages":[{"role":"user","thought":true,"signature":"abc","content":"${CODE}"}]}`,
  ],
  [
    'a text block that says it is a thought',
    '/v1/messages',
    `{"model":"messages","max_tokens":5,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","thought":true,"signature":"abc","text":"${CODE}"}]},{"role":"user","content":"hi"}]}`,
  ],
  [
    'a block of signed reasoning in a turn of the user',
    '/v1/messages',
    `{"model":"messages","max_tokens":5,"messages":[{"role":"user","content":[{"type":"thinking","signature":"abc","thinking":"${CODE}"}]}]}`,
  ],
  [
    'a message that states the type of a result',
    '/v1/chat/completions',
    `{"model":"chat","messages":[{"role":"user","type":"x_tool_result","content":"${CODE}"}]}`,
  ],
  ...(
    [
      ['the name of a property', `"properties":{"${CODE}":{"type":"string"}}`],
      ['a property that must be given', `"properties":{},"required":["${CODE}"]`],
      ['a schema without members', `"properties":{"a":{"type":"object","properties":{"${CODE}":true}}}`],
      [
        'the name of a definition',
        `"$defs":{"${CODE}":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/a"}}`,
      ],
      ['a reference', `"properties":{"a":{"$ref":"#/$defs/${CODE}"}}`],
      ['a property that is called properties', `"properties":{"properties":{"properties":{"${CODE}":{}}}}`],
      ['the order of properties', `"properties":{},"propertyOrdering":["${CODE}"]`],
    ] as const
  ).flatMap(([what, members]): [string, string, string][] => {
    const schema = `{"type":"object",${members}}`
    return [
      [
        `${what} (chat)`,
        '/v1/chat/completions',
        `{"model":"chat","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]}`,
      ],
      [
        `${what} (messages)`,
        '/v1/messages',
        `{"model":"messages","max_tokens":5,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f","input_schema":${schema}}]}`,
      ],
      [
        `${what} (responses)`,
        '/v1/responses',
        `{"model":"responses","input":"hi","tools":[{"type":"function","name":"f","parameters":${schema}}]}`,
      ],
      [
        `${what} (gemini)`,
        '/v1beta/models/gemini:generateContent',
        `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":${schema}}]}]}`,
      ],
    ]
  }),
  ...['city', 'format', 'language', 'id', 'type', 'name', 'image_url'].map(
    (name): [string, string, string] => [
      `a variable of a prompt that is called ${name}`,
      '/v1/responses',
      `{"model":"responses","prompt":{"id":"pmpt_1","variables":{"${name}":"${CODE}"}}}`,
    ],
  ),
  [
    'the name of a variable of a prompt',
    '/v1/responses',
    `{"model":"responses","prompt":{"id":"pmpt_1","variables":{"${CODE}":"x"}}}`,
  ],
  [
    'a text that is a variable of a prompt',
    '/v1/responses',
    `{"model":"responses","prompt":{"id":"pmpt_1","variables":{"city":{"type":"input_text","text":"${CODE}"}}}}`,
  ],
])('a guard of requests finds its match in %s', async (_what, path, body) => {
  const lane = CLIENTS.find((name) => body.includes(`"model":"${name}"`)) ?? 'gemini'
  const { answer, sent } = await post(path, body, keyOf('redact-input'), lane)
  expect(answer.status).toBe(200)
  expect(sent).toHaveLength(1)
  expect(sent[0]).not.toContain(CODE)
})

test.each<[string, string, string]>([
  [
    'arguments',
    '/v1/chat/completions',
    '{"model":"chat","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\\"n\\": [47110815]}"}}]},{"role":"tool","tool_call_id":"c","content":"1"}]}',
  ],
  [
    'arguments that are an object',
    '/v1/chat/completions',
    '{"model":"chat","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{"n": [47110815]}}}]},{"role":"tool","tool_call_id":"c","content":"1"}]}',
  ],
  [
    'the input of a tool',
    '/v1/messages',
    '{"model":"messages","max_tokens":5,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"n": [47110815]}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"1"}]}]}',
  ],
  [
    'arguments',
    '/v1/responses',
    '{"model":"responses","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\\"n\\": [47110815]}"},{"type":"function_call_output","call_id":"c","output":"1"}]}',
  ],
  [
    'arguments of a call',
    '/v1beta/models/gemini:generateContent',
    '{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"n": [47110815]}},"thoughtSignature":"c2ln"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"r":1}}}]}]}',
  ],
  [
    'the result of a call',
    '/v1beta/models/gemini:generateContent',
    '{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"r": 47110815}}}]}]}',
  ],
])('a guard redacts a matching number in %s as it does a text (%s)', async (_what, path, body) => {
  const lane = CLIENTS.find((name) => body.includes(`"model":"${name}"`)) ?? 'gemini'
  const { answer, sent } = await post(path, body, 'number', lane)
  expect([answer.status, answer.headers['x-gateway-guards']]).toEqual([200, 'number=redacted;count=1'])
  const isText = body.includes('\\"n')
  expect(sent).toEqual([body.replace('47110815', isText ? '\\"[REDACTED]\\"' : '"[REDACTED]"')])
})
