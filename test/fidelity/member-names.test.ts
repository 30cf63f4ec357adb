import { Agent } from 'node:http'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall } from '../fixtures/form.ts'
import { readAsGo, type Struct } from '../fixtures/go-json.ts'
import { lawRuns } from '../runner/tier.ts'

/** Complete requests: each object in them is a level with known names. */
const REQUESTS: Readonly<Record<string, object>> = {
  '/v1/chat/completions': {
    model: 'chat',
    messages: [
      {
        role: 'user',
        name: 'ann',
        content: [
          { type: 'text', text: 'hi', cache_control: { type: 'ephemeral', ttl: '5m' } },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'low' } },
        ],
      },
      {
        role: 'assistant',
        reasoning_details: [{ type: 'reasoning.text', text: 't' }],
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: 'done' },
    ],
    max_tokens: 5,
    max_completion_tokens: 5,
    stream: false,
    stream_options: { include_usage: true, include_obfuscation: false },
    n: 1,
    stop: ['x'],
    temperature: 1,
    top_p: 1,
    top_k: 5,
    seed: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    logprobs: true,
    top_logprobs: 1,
    tools: [{ type: 'function', function: { name: 'f', description: 'd', strict: true } }],
    tool_choice: { type: 'function', function: { name: 'f' } },
    parallel_tool_calls: true,
    response_format: { type: 'json_schema', json_schema: { name: 's', strict: true } },
    functions: [{ name: 'f', description: 'd' }],
    function_call: { name: 'f' },
    prediction: { type: 'content', content: 'x' },
    reasoning_effort: 'low',
    reasoning: { effort: 'low', max_tokens: 5 },
    verbosity: 'low',
    modalities: ['text'],
    audio: { voice: 'v', format: 'wav' },
    web_search_options: { search_context_size: 'low' },
    prompt_cache_key: 'k',
    prompt_cache_retention: '24h',
    store: false,
    user: 'u',
    safety_identifier: 's',
    service_tier: 'flex',
    inference_geo: 'eu',
    speed: 'fast',
    models: ['dear'],
    route: 'fallback',
    provider: { order: ['a'], data_collection: 'deny', max_price: { prompt: 1 } },
    plugins: [{ id: 'web' }],
    transforms: ['middle-out'],
    search_parameters: { mode: 'on' },
    extra_body: { model: 'dear', max_tokens: 9, google: { thinking_config: { thinking_budget: 0 } } },
    options: { num_predict: 5, temperature: 1 },
  },
  '/v1/messages': {
    model: 'messages',
    max_tokens: 5,
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'hi', cache_control: { type: 'ephemeral' } }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: {} }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'c', content: 'done' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } },
        ],
      },
    ],
    system: [{ type: 'text', text: 's', cache_control: { type: 'ephemeral', ttl: '1h' } }],
    stream: false,
    temperature: 1,
    top_p: 1,
    top_k: 5,
    stop_sequences: ['x'],
    tools: [
      { name: 'f', description: 'd', input_schema: {} },
      { type: 'web_search_20250305', name: 'w', max_uses: 1 },
    ],
    tool_choice: { type: 'tool', name: 'f', disable_parallel_tool_use: true },
    thinking: { type: 'enabled', budget_tokens: 3 },
    output_config: { effort: 'low' },
    service_tier: 'auto',
    inference_geo: 'eu',
    speed: 'fast',
    models: ['dear'],
    extra_body: { model: 'dear' },
  },
  '/v1/responses': {
    model: 'responses',
    input: [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: 'done' },
    ],
    instructions: 'i',
    max_output_tokens: 5,
    max_tool_calls: 1,
    stream: false,
    stream_options: { include_obfuscation: false },
    store: false,
    background: false,
    include: [],
    parallel_tool_calls: true,
    temperature: 1,
    top_p: 1,
    top_logprobs: 1,
    tools: [
      { type: 'function', name: 'f', strict: true },
      { type: 'web_search', search_context_size: 'low' },
      { type: 'code_interpreter', container: { type: 'auto', file_ids: [] } },
      { type: 'namespace', name: 'ns', tools: [{ type: 'function', name: 'g' }] },
    ],
    tool_choice: { type: 'function', name: 'f' },
    text: { verbosity: 'low', format: { type: 'text' } },
    reasoning: { effort: 'low', summary: 'auto' },
    truncation: 'auto',
    service_tier: 'flex',
    prompt_cache_key: 'k',
    prompt_cache_retention: '24h',
    prompt_cache_options: { ttl: '30m' },
    safety_identifier: 's',
    user: 'u',
    models: ['dear'],
  },
  '/v1beta/models/gemini:generateContent': {
    contents: [
      { role: 'user', parts: [{ text: 'hi' }, { inlineData: { mimeType: 'image/png', data: 'AA==' } }] },
      {
        role: 'model',
        parts: [{ functionCall: { id: 'c', name: 'f', args: {} }, thoughtSignature: 'AA==' }],
      },
      { role: 'user', parts: [{ functionResponse: { id: 'c', name: 'f', response: {} } }] },
    ],
    systemInstruction: { role: 'user', parts: [{ text: 's' }] },
    tools: [{ functionDeclarations: [{ name: 'f', description: 'd' }], googleSearch: {} }],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['f'] } },
    generationConfig: {
      maxOutputTokens: 5,
      candidateCount: 1,
      temperature: 1,
      topP: 1,
      topK: 5,
      stopSequences: ['x'],
      seed: 1,
      presencePenalty: 0,
      frequencyPenalty: 0,
      responseModalities: ['TEXT'],
      responseMimeType: 'text/plain',
      thinkingConfig: { thinkingBudget: 3, includeThoughts: true },
    },
    serviceTier: 'flex',
    store: false,
    model: 'models/dear',
  },
  '/v1beta/models/gemini:countTokens': {
    generateContentRequest: { model: 'models/gemini', contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
  },
  '/v1beta/models/gemini:batchEmbedContents': {
    requests: [
      {
        model: 'models/gemini',
        content: { parts: [{ text: 'hi' }] },
        taskType: 'x',
        outputDimensionality: 5,
      },
    ],
  },
  '/v1/messages/count_tokens': { model: 'messages', messages: [{ role: 'user', content: 'hi' }], tools: [] },
  '/v1/responses/input_tokens': { model: 'responses', input: 'hi' },
  '/v1/responses/compact': { model: 'responses', input: 'hi', instructions: 'i' },
  '/v1/completions': {
    model: 'chat',
    prompt: 'hi',
    max_tokens: 5,
    n: 1,
    best_of: 1,
    stream: false,
    stream_options: { include_usage: true },
    echo: true,
    suffix: 's',
  },
  '/v1/embeddings': { model: 'chat', input: 'hi', encoding_format: 'float', dimensions: 5, user: 'u' },
  '/v1/moderations': { model: 'chat', input: [{ type: 'image_url', image_url: { url: 'https://a.test/' } }] },
  '/v1/images/generations': {
    model: 'chat',
    prompt: 'p',
    n: 1,
    size: 's',
    quality: 'q',
    stream: false,
    partial_images: 0,
  },
  '/v1/images/edits': { model: 'chat', prompt: 'p', images: [{ image_url: 'https://a.test/' }], n: 1 },
  '/v1/audio/speech': {
    model: 'chat',
    input: 'hi',
    voice: 'v',
    instructions: 'i',
    response_format: 'pcm',
    stream_format: 'sse',
    speed: 1,
  },
  '/v1/rerank': {
    model: 'rerank',
    query: 'q',
    documents: [{ text: 'a' }],
    top_n: 1,
    return_documents: true,
    max_chunk_per_doc: 1,
    overlap_tokens: 1,
  },
}

const LANES = ['chat', 'messages', 'responses', 'gemini', 'rerank'] as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced([...LANES, 'dear']),
    channels: [
      ...LANES.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
      channel('dear', upstream.baseUrl('dear')),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

/** An object in a request, by the keys and indexes that lead to it. */
type Path = readonly (string | number)[]

/** A known name at one level of a request. */
interface Place {
  readonly endpoint: string
  readonly level: Path
  readonly name: string
}

/** Members whose values belong to the client, with arbitrary names. */
const LEFT_ALONE = new Set(['metadata', 'input_schema', 'args', 'response', 'max_price', 'googleSearch'])

function levelsOf(value: unknown, path: Path = []): Path[] {
  if (Array.isArray(value)) return value.flatMap((one, index) => levelsOf(one, [...path, index]))
  if (typeof value !== 'object' || value === null) return []
  const isResult = 'tool_use_id' in value
  const below = Object.entries(value).flatMap(([name, one]) =>
    LEFT_ALONE.has(name) || (name === 'input' && 'id' in value) || (isResult && name === 'content')
      ? []
      : levelsOf(one, [...path, name]),
  )
  return [path, ...below]
}

function at(request: unknown, level: Path): Record<string, unknown> {
  return level.reduce((value, key) => (value as Record<string | number, unknown>)[key], request) as Record<
    string,
    unknown
  >
}

const PLACES: readonly Place[] = Object.entries(REQUESTS).flatMap(([endpoint, request]) =>
  levelsOf(request).flatMap((level) =>
    Object.keys(at(request, level)).map((name) => ({ endpoint, level, name })),
  ),
)

/** The request with one additional member at a level; `name` is its JSON text. */
function withMember({ endpoint, level }: Place, name: string, value: unknown, isFirst: boolean): string {
  const request = structuredClone(REQUESTS[endpoint]) as object
  const holder = at(request, level)
  const others = Object.entries(holder)
  for (const key of Object.keys(holder)) delete holder[key]
  for (const [key, one] of isFirst ? [['\u0000', value], ...others] : [...others, ['\u0000', value]])
    holder[key as string] = one
  return JSON.stringify(request).replace('"\\u0000"', name)
}

const agent = new Agent({ keepAlive: true })
afterAll(() => agent.destroy())

const post = (path: string, body: string): Promise<FullResponse> =>
  call(fixture.gateway.url, body, { path, key: 'ann', headers: { 'x-goog-api-key': 'sk-ann' }, agent })

/** Another spelling of a name, which simple case folding makes equal to it. */
const misspelled = (name: string): fc.Arbitrary<string> =>
  fc
    .tuple(...Array.from(name, (letter) => fc.constantFrom(...spellings(letter))))
    .map((letters) => letters.join(''))
    .filter((text) => text !== name)

function spellings(letter: string): string[] {
  const more = { s: ['\u017f'], k: ['\u212a'] }[letter.toLowerCase()] ?? []
  return [...new Set([letter, letter.toUpperCase(), letter.toLowerCase(), ...more])]
}

/** JSON texts of a name: plain, or with escapes. */
const written = (name: string): fc.Arbitrary<string> =>
  fc
    .tuple(
      ...Array.from(name, (letter) =>
        fc.boolean().map((isEscaped) => (isEscaped ? escaped(letter) : letter)),
      ),
    )
    .map((letters) => `"${letters.join('')}"`)

function escaped(letter: string): string {
  return `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function forget(): void {
  for (const lane of [...LANES, 'dear']) fixture.upstream.forget(lane)
}

function received(): number {
  return [...LANES, 'dear'].reduce((sum, lane) => sum + fixture.upstream.received(lane).length, 0)
}

/** Asserts a refusal in the dialect's envelope, before anything was sent upstream. */
function expectRefused(place: Place, answer: FullResponse, ...parts: readonly string[]): void {
  const { endpoint } = place
  expect(answer.status, `${JSON.stringify(place)} ${answer.text}`).toBe(400)
  const { error } = answer.json() as unknown as { error: Record<string, unknown> }
  if (endpoint.startsWith('/v1beta/')) expect(error['status']).toBe('INVALID_ARGUMENT')
  else
    expect(error['type']).toBe(
      endpoint.startsWith('/v1/messages') ? 'gateway_error' : 'invalid_request_error',
    )
  for (const part of parts) expect(error['message']).toContain(part)
  expect(received()).toBe(0)
}

test.each(Object.keys(REQUESTS))(
  'a request with every known JSON member is accepted at %s',
  async (endpoint) => {
    const answer = await post(endpoint, JSON.stringify(REQUESTS[endpoint]))
    expect(answer.text).not.toMatch(/Invalid (?:name|JSON)/)
  },
)

test('a JSON member name that differs from a known one only in case is a 400 with both spellings, at every level', async () => {
  forget()
  for (const place of PLACES) {
    const [other] = fc.sample(misspelled(place.name), { numRuns: 1, seed: PLACES.indexOf(place) }) as [string]
    const answer = await post(place.endpoint, withMember(place, JSON.stringify(other), 'x', false))
    expectRefused(place, answer, `'${other}'`, `'${place.name}'`)
  }
})

test('misspelt member names with the long s, the Kelvin sign or escapes are refused at any position', async () => {
  forget()
  const names = fc.constantFrom(...PLACES).chain((place) =>
    misspelled(place.name).chain((other) =>
      fc.record({
        place: fc.constant(place),
        other: fc.constant(other),
        text: written(other),
        isFirst: fc.boolean(),
      }),
    ),
  )
  await fc.assert(
    fc.asyncProperty(names, async ({ place, other, text, isFirst }) => {
      const answer = await post(place.endpoint, withMember(place, text, 'x', isFirst))
      expectRefused(place, answer, `'${other}'`, `'${place.name}'`)
    }),
    { numRuns: lawRuns(1_000) },
  )
})

test('a second JSON member of the same name is a 400 at every level, escaped or not', async () => {
  forget()
  for (const [index, place] of PLACES.entries()) {
    const [text] = fc.sample(written(place.name), { numRuns: 1, seed: index }) as [string]
    expectRefused(place, await post(place.endpoint, withMember(place, text, 'x', true)), 'is given twice')
  }
  const unknown: Place = { endpoint: '/v1/chat/completions', level: ['tools', 0], name: 'x' }
  expectRefused(unknown, await post(unknown.endpoint, withMember(unknown, '"x":1,"\\u0078"', 2, true)), '"x"')
})

test.each([
  ['generation_config', []],
  ['service_tier', []],
  ['system_instruction', []],
  ['max_output_tokens', ['generationConfig']],
  ['candidate_count', ['generationConfig']],
  ['thinking_budget', ['generationConfig', 'thinkingConfig']],
  ['function_declarations', ['tools', 0]],
  ['inline_data', ['contents', 0, 'parts', 1]],
] as const)('both spellings of one field are a 400 in a Gemini object: %s', async (name, level) => {
  forget()
  const place = { endpoint: '/v1beta/models/gemini:generateContent', level, name }
  expectRefused(
    place,
    await post(place.endpoint, withMember(place, `"${name}"`, {}, false)),
    name,
    'given twice',
  )
})

describe('objects with arbitrary names', () => {
  const odd = '{"Model":"a","model":"b","model":"c","Type":1,"type":2,"Max_Tokens":3}'
  const messages = '"messages":[{"role":"user","content":"hi"}]'
  test.each([
    ['chat', '/v1/chat/completions', `{"model":"chat",${messages},"metadata":{"Model":"a","model":"b"}}`],
    [
      'chat',
      '/v1/chat/completions',
      `{"model":"chat",${messages},"tools":[{"type":"function","function":{"name":"f","parameters":${odd}}}]}`,
    ],
    [
      'chat',
      '/v1/chat/completions',
      `{"model":"chat",${messages},"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":${odd}}}}`,
    ],
    [
      'chat',
      '/v1/chat/completions',
      `{"model":"chat",${messages},"logit_bias":{"1":1},"of_tomorrow":${odd}}`,
    ],
    [
      'messages',
      '/v1/messages',
      `{"model":"messages","max_tokens":5,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":${odd}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"a","Text":"b"}]}]}],"metadata":${odd},"tools":[{"name":"f","input_schema":${odd}}]}`,
    ],
    [
      'responses',
      '/v1/responses',
      `{"model":"responses","input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a","Text":"b"}]}],"metadata":{"Model":"a","model":"b"},"tools":[{"type":"function","name":"f","parameters":${odd}}]}`,
    ],
    [
      'gemini',
      '/v1beta/models/gemini:generateContent',
      `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":${odd}},"thoughtSignature":"AA=="}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":${odd}}}]}],"labels":${odd},"generationConfig":{"responseSchema":${odd}}}`,
    ],
  ])('metadata, schemas, arguments and results may have arbitrary names: %s', async (lane, path, body) => {
    fixture.upstream.script(lane, { kind: 'status', status: 418 })
    await post(path, body)
    expect(fixture.upstream.received(lane).at(0)?.text).toBe(body)
  })
})

test('a form field whose name differs from a known one only in case is refused', async () => {
  forget()
  const bytes = formBytes([
    { name: 'image', content: Buffer.from('one'), filename: 'a.png', type: 'image/png' },
    { name: 'model', content: 'chat' },
    { name: 'Model', content: 'dear' },
  ])
  const answer = await call(fixture.gateway.url, bytes, formCall('/v1/images/edits', 'ann', bytes))
  expectRefused({ endpoint: '/v1/images/edits', level: [], name: 'model' }, answer, `'Model'`, `'model'`)
})

describe('an upstream that reads JSON as Go does', () => {
  const CHAT: Struct = {
    model: true,
    max_tokens: true,
    max_completion_tokens: true,
    n: true,
    stream: true,
    service_tier: true,
    stream_options: { include_obfuscation: true },
    reasoning: { effort: true, max_tokens: true },
    tools: [{ type: true }],
  }
  const names = [
    'model',
    'max_tokens',
    'n',
    'stream',
    'service_tier',
    'stream_options',
    'reasoning',
    'tools',
  ] as const
  const values: Readonly<Record<(typeof names)[number], readonly string[]>> = {
    model: ['"chat"', '"dear"'],
    max_tokens: ['5', '5000'],
    n: ['1', '128'],
    stream: ['false'],
    service_tier: ['"flex"', '"priority"'],
    stream_options: ['{"include_obfuscation":true}', '{"Include_Obfuscation":true}'],
    reasoning: [
      '{"effort":"low"}',
      '{"effort":"low","Effort":"high"}',
      '{"max_tokens":5,"max_to\u212aens":500}',
    ],
    tools: ['[{"type":"function","function":{"name":"f"}}]', '[{"type":"function","Type":"web_search"}]'],
  }
  const member = fc
    .constantFrom(...names)
    .chain((name) =>
      fc.tuple(fc.oneof(fc.constant(name), misspelled(name)), fc.constantFrom(...values[name])),
    )

  test('an upstream that ignores the case of member names reads what the gateway checked, or gets no request', async () => {
    let accepted = 0
    await fc.assert(
      fc.asyncProperty(fc.array(member, { maxLength: 4 }), async (more) => {
        forget()
        fixture.upstream.script('chat', { kind: 'whole' })
        const members = more.map(([name, value]) => `,${JSON.stringify(name)}:${value}`).join('')
        const body = `{"messages":[{"role":"user","content":"hi"}]${members},"model":"chat"}`
        const answer = await post('/v1/chat/completions', body)
        if (answer.status === 400) {
          expect(received()).toBe(0)
          return
        }
        expect(answer.status, answer.text).toBe(200)
        accepted++
        const sent = fixture.upstream.only('chat').text
        const exact = JSON.parse(sent) as Record<string, unknown>
        const taken = readAsGo(sent, CHAT)
        expect(taken['model']).toBe('chat')
        expect(taken['service_tier']).toBeUndefined()
        expect(taken['stream_options'] ?? {}).toEqual({})
        expect(taken['max_tokens']).toBe(exact['max_tokens'])
        expect(taken['n']).toBe(exact['n'])
        expect(taken['reasoning']).toEqual(exact['reasoning'])
        for (const tool of (taken['tools'] as { type: string }[] | undefined) ?? [])
          expect(tool.type).toBe('function')
      }),
      { numRuns: lawRuns(1_500) },
    )
    expect(accepted).toBeGreaterThan(10)
  })
})
