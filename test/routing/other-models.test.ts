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

const ALL = ['models', 'route', 'provider', 'plugins', 'transforms', 'search_parameters', 'extra_body']
const PROTOCOLS = ['chat', 'messages', 'responses', 'gemini', 'rerank'] as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced([...PROTOCOLS, 'open', 'through', 'chosen:online', 'mapped', 'routed']),
    channels: [
      ...PROTOCOLS.map((name) => channel(name, upstream.baseUrl(name), { protocol: name })),
      channel('open', upstream.baseUrl('open'), { allow: ALL }),
      channel('through', upstream.baseUrl('through'), { pass_through: true }),
      channel('chosen', upstream.baseUrl('chosen'), { models: ['chosen:online'] }),
      channel('mapped', upstream.baseUrl('mapped'), { model_mapping: { mapped: 'acme/m:online' } }),
      channel('routed', upstream.baseUrl('routed'), { override: { set: { provider: { order: ['acme'] } } } }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('one', { model_limits_enabled: true, model_limits: 'chat' })]),
    ],
  }))
})
afterAll(() => fixture?.close())

const REQUESTS = {
  chat: ['/v1/chat/completions', '"messages":[{"role":"user","content":"hi"}]'],
  messages: ['/v1/messages', '"max_tokens":5,"messages":[{"role":"user","content":"hi"}]'],
  responses: ['/v1/responses', '"input":"hi"'],
  gemini: ['/v1beta/models/gemini:generateContent', '"contents":[{"parts":[{"text":"hi"}]}]'],
  rerank: ['/v1/rerank', '"query":"q","documents":["a"]'],
} as const

const ANSWERS: Readonly<Record<string, Behaviour>> = {
  messages: wholeMessage([{ text: 'hi' }]),
  responses: wholeResponse({ text: 'hi' }),
  gemini: wholeGemini(),
  rerank: cohereAnswer(scored(1)),
}

type Sent = { readonly text: string; readonly path: string; readonly listed: unknown }

/** Makes a call; returns what the upstream received, and the header that lists the fields left out. */
async function sent(lane: string, path: string, body: string | Buffer, key = 'ann'): Promise<Sent> {
  fixture.upstream.script(lane, ANSWERS[lane] ?? { kind: 'whole' })
  const answer = await post(path, body, key)
  const received = fixture.upstream.received(lane)[0]
  if (!received) throw new Error(`nothing was sent: ${answer.status} ${answer.text}`)
  return { text: received.text, path: received.path, listed: answer.headers['x-gateway-dropped'] }
}

function post(path: string, body: string | Buffer, key = 'ann'): Promise<FullResponse> {
  const options = { path, key, headers: { 'x-goog-api-key': `sk-${key}` } }
  return call(fixture.gateway.url, body, options)
}

const MEMBERS = [
  ['models', '["dear"]'],
  ['route', '"fallback"'],
  ['provider', '{"order":["dear"]}'],
  ['plugins', '[{"id":"web"}]'],
  ['transforms', '["middle-out"]'],
  ['preset', '"dear"'],
  ['fallbacks', '[{"model":"dear"}]'],
  ['search_parameters', '{"mode":"on"}'],
  ['extra_body', '{"model":"dear"}'],
] as const

describe('a member that may select another model or price', () => {
  test.each(
    PROTOCOLS.flatMap((protocol) => MEMBERS.map(([name, value]) => [name, protocol, value] as const)),
  )(
    'the member %s, which may select another model, is removed on the way to %s',
    async (name, protocol, value) => {
      const [path, rest] = REQUESTS[protocol]
      const model = protocol === 'gemini' ? '' : `"model":"${protocol}",`
      const { text } = await sent(protocol, path, `{${model}${rest},"${name}":${value},"x" : 1.0}`)
      expect(text).toBe(`{${model}${rest},"x" : 1.0}`)
    },
  )

  const chat = (model: string, more: string): string => `{"model":"${model}",${REQUESTS.chat[1]},${more}}`
  const EVERY = MEMBERS.map(([name, value]) => `"${name}":${value}`).join(',')

  test('a JSON member that may select another model is removed from a request, and listed as dropped', async () => {
    const { text, listed } = await sent('chat', REQUESTS.chat[0], chat('chat', EVERY))
    expect(text).toBe(`{"model":"chat",${REQUESTS.chat[1]}}`)
    expect(listed).toBe(
      'models, route, provider, plugins, transforms, preset, fallbacks, search_parameters, extra_body',
    )
  })

  test('a JSON member that may select another model is removed from a converted request, and listed as dropped', async () => {
    fixture.upstream.script('messages', wholeMessage([{ text: 'hi' }]))
    const answer = await post(REQUESTS.chat[0], chat('messages', EVERY))
    expect(answer.status, answer.text).toBe(200)
    for (const [name] of MEMBERS) expect(answer.headers['x-gateway-dropped']).toContain(name)
    expect(answer.headers['x-gateway-dropped']).not.toContain('unknown')
    expect(fixture.upstream.only('messages').text).not.toContain('dear')
  })

  test.each(['open', 'through'])(
    'a JSON member that may select another model stays where the channel allows it or is in pass-through mode: %s',
    async (model) => {
      const { text, listed } = await sent(model, REQUESTS.chat[0], chat(model, EVERY))
      expect(text).toBe(chat(model, EVERY))
      expect(listed).toBeUndefined()
    },
  )

  test("a JSON member such as provider that the operator sets on a channel replaces the value in the client's request", async () => {
    const { text } = await sent('routed', REQUESTS.chat[0], chat('routed', '"provider":{"order":["dear"]}'))
    expect(JSON.parse(text).provider).toEqual({ order: ['acme'] })
  })

  test.each(['fallback_models', 'draft_model', 'fallbackModel', 'backup_MODEL\u017f'])(
    'a JSON member of a request is removed if its name ends in model or models: %s',
    async (name) => {
      const { text, listed } = await sent('chat', REQUESTS.chat[0], chat('chat', `"${name}":"dear"`))
      expect(text).toBe(`{"model":"chat",${REQUESTS.chat[1]}}`)
      expect(listed).toBe('models')
    },
  )

  test('the member model of a tool is removed from a request', async () => {
    const tools = (model: string): string =>
      `"tools":[{"type":"image_generation"${model},"size":"s"},{"type":"function","name":"f","parameters":{"model":1}}]`
    const given = `{"model":"responses","input":"hi",${tools(',"model":"dear"')}}`
    const { text, listed } = await sent('responses', REQUESTS.responses[0], given)
    expect(text).toBe(`{"model":"responses","input":"hi",${tools('')}}`)
    expect(listed).toBe('tools.model')
  })

  const OTHERS = [{ type: 'web_search_20250305', name: 'web_search' }]
  const FUNCTION = { type: 'function', name: 'f', parameters: { properties: { model: {} } } }
  test.each<[string, 'chat' | 'messages' | 'responses', object, object]>([
    ["Anthropic's advisor", 'messages', { type: 'advisor_20260301', name: 'advisor', model: 'dear' }, OTHERS],
    [
      "OpenRouter's advisor",
      'chat',
      { type: 'openrouter:advisor', parameters: { model: 'dear' } },
      [FUNCTION],
    ],
    ["OpenRouter's, without a named model", 'responses', { type: 'openrouter:fusion' }, [FUNCTION]],
    ['one of OpenRouter that is not known', 'chat', { type: 'openrouter:new' }, [FUNCTION]],
    [
      'a panel of models',
      'responses',
      { type: 'openrouter:fusion', parameters: { analysis_models: ['dear'] } },
      [FUNCTION],
    ],
    [
      'a nested tool with a model',
      'chat',
      { type: 'new', parameters: { tools: [{ model: 'dear' }] } },
      [FUNCTION],
    ],
  ])(
    'a tool for which the provider asks another model is removed whole: %s',
    async (_, dialect, tool, others) => {
      const [path, rest] = REQUESTS[dialect]
      const choice =
        'name' in tool ? { type: 'tool', name: tool.name } : { type: (tool as { type: string }).type }
      const request = (more: object): string =>
        `{"model":"${dialect}",${rest}${JSON.stringify(more).replace('{', ',')}`
      const tools = others as object[]
      expect(
        await sent(dialect, path, request({ tools: [tool, ...tools], tool_choice: choice })),
      ).toMatchObject({
        text: request({ tools }),
        listed: 'tools.model',
      })
      expect(
        await sent(dialect, path, request({ tools: [...tools, tool], tool_choice: { type: 'any' } })),
      ).toMatchObject({
        text: request({ tools, tool_choice: { type: 'any' } }),
      })
      // No list of tools is left, and nothing that needs one.
      const alone = request({ tools: [tool], tool_choice: choice })
      expect((await sent(dialect, path, alone)).text).toBe(`{"model":"${dialect}",${rest}}`)
    },
  )

  const ADVISOR = { type: 'advisor_20260301', name: 'advisor', model: 'dear' }
  const ASKED = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'advisor', input: {} }
  const ADVICE = {
    type: 'advisor_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: { type: 'advisor_result', text: 'Begin with the tests.' },
  }
  const SEARCH = { type: 'server_tool_use', id: 'srvtoolu_2', name: 'web_search', input: { query: 'q' } }
  const said = (...content: object[]): object => ({ role: 'assistant', content })
  const wrote = (text: string): object => ({ role: 'user', content: text })
  const asked = (model: string, tools: object[], messages: object[]): string =>
    JSON.stringify({ model, max_tokens: 5, messages, tools })

  test.each([
    [
      'beside others',
      [said({ type: 'text', text: 'a' }, ASKED, ADVICE, SEARCH)],
      [said({ type: 'text', text: 'a' }, SEARCH)],
    ],
    ['alone', [said(ASKED, ADVICE)], []],
    [
      'in two messages',
      [said(ASKED), said(ADVICE, { type: 'text', text: 'b' })],
      [said({ type: 'text', text: 'b' })],
    ],
    ['not at all', [said({ type: 'text', text: 'advisor' })], [said({ type: 'text', text: 'advisor' })]],
  ])('what a removed advisor said in earlier turns is removed with it: %s', async (_, turns, left) => {
    const history = [wrote('hi'), ...turns, wrote('go on')]
    const given = asked('messages', [ADVISOR, ...OTHERS], history)
    const { text, listed } = await sent('messages', '/v1/messages', given)
    expect(text).toBe(asked('messages', OTHERS, [wrote('hi'), ...left, wrote('go on')]))
    expect(listed).toBe(
      JSON.stringify(left) === JSON.stringify(turns) ? 'tools.model' : 'tools.model, messages.advisor',
    )
  })

  test('what an advisor said in earlier turns is sent where no advisor is removed', async () => {
    const given = asked('messages', OTHERS, [wrote('hi'), said(ASKED, ADVICE), wrote('go on')])
    expect(await sent('messages', '/v1/messages', given)).toMatchObject({ text: given, listed: undefined })
  })

  test('a tool that OpenRouter runs without another model is sent', async () => {
    const names = ['apply_patch', 'datetime', 'image_generation', 'shell', 'web_fetch', 'web_search']
    const tools = names.map((name) => ({ type: `openrouter:${name}` }))
    const given = `{"model":"chat",${REQUESTS.chat[1]},"tools":${JSON.stringify(tools)}}`
    expect(await sent('chat', REQUESTS.chat[0], given)).toMatchObject({ text: given, listed: undefined })
  })

  test('a tool for which the provider asks another model is sent whole where the channel allows models', async () => {
    const tools = [{ type: 'openrouter:advisor', parameters: { model: 'dear' } }]
    const given = `{"model":"open",${REQUESTS.chat[1]},"tools":${JSON.stringify(tools)}}`
    expect(await sent('open', REQUESTS.chat[0], given)).toMatchObject({ text: given, listed: undefined })
  })

  test.each([
    ['', ''],
    // The input is sent without the thoughts that another dialect signed.
    ['{"type":"reasoning","id":"rs_00000000000000000000000000000000001","summary":[]},', ', input.reasoning'],
  ])(
    'the member model of a tool that an input item adds is removed, after other items: %s',
    async (before, more) => {
      const item = (model: string): string =>
        `{"type":"additional_tools","role":"developer","tools":[{"type":"image_generation"${model}}]}`
      const given = `{"model":"responses","input":[${before}${item(',"model":"dear"')}]}`
      const { text, listed } = await sent('responses', REQUESTS.responses[0], given)
      expect(text).toBe(`{"model":"responses","input":[${item('')}]}`)
      expect(String(listed).split(', ').toSorted()).toEqual(`tools.model${more}`.split(', ').toSorted())
    },
  )

  test("the fields routingConfig and modelSelectionConfig of a Gemini request, and a model other than its path's, are removed", async () => {
    const [path, rest] = REQUESTS.gemini
    const config = '"routingConfig":{"manualMode":{"modelName":"dear"}},"model_selection_config":{}'
    const given = `{${rest},"model":"models/dear","generationConfig":{"topK":1.0,${config}}}`
    const { text, listed } = await sent('gemini', path, given)
    expect(text).toBe(`{${rest},"generationConfig":{"topK":1.0}}`)
    expect(listed).toBe('model, routingConfig, modelSelectionConfig')
    const same = `{${rest},"model":"models/gemini"}`
    expect(await sent('gemini', path, same)).toMatchObject({ text: same, listed: undefined })
  })

  test.each([
    ['/v1/embeddings', '"input":"hi"'],
    ['/v1/moderations', '"input":"hi"'],
    ['/v1/completions', '"prompt":"hi"'],
    ['/v1/images/generations', '"prompt":"hi"'],
    ['/v1/audio/speech', '"input":"hi"'],
  ])('a JSON member that may select another model is removed from requests at %s', async (path, rest) => {
    const { text } = await sent('chat', path, `{"model":"chat",${rest},${EVERY}}`)
    expect(text).toBe(`{"model":"chat",${rest}}`)
  })

  test('a field of a multipart form that may select another model is sent upstream empty', async () => {
    const form = (models: string): Buffer =>
      formBytes([
        { name: 'image', content: Buffer.from('one'), filename: 'a.png', type: 'image/png' },
        { name: 'models', content: models },
        { name: 'model', content: 'chat' },
      ])
    fixture.upstream.script('chat', { kind: 'whole', body: '{"data":[{"b64_json":"aGk="}]}' })
    const answer = await call(
      fixture.gateway.url,
      form('dear'),
      formCall('/v1/images/edits', 'ann', form('dear')),
    )
    expect(answer.status, answer.text).toBe(200)
    expect(fixture.upstream.only('chat').text).toBe(form('').toString())
    expect(answer.headers['x-gateway-dropped']).toBe('models')
  })
})

describe("OpenRouter's provider", () => {
  const KEPT =
    '"data_collection":"deny","zdr":true,"ignore":["a"],"require_parameters":true,"quantizations":["fp8"],"max_price":{"prompt":1.0}'
  const [path, rest] = REQUESTS.chat
  const body = (provider: string): string => `{"model":"chat",${rest},"provider":${provider}}`

  test("OpenRouter's field provider keeps members that only restrict routing, and these are not listed as dropped", async () => {
    const given = body(`{ ${KEPT} }`)
    expect(await sent('chat', path, given)).toMatchObject({ text: given, listed: undefined })
  })
  test("OpenRouter's field provider loses members that do not only restrict routing, and these are listed as dropped", async () => {
    const given = body(`{"order":["a"],${KEPT},"only":["b"],"sort":"price","allow_fallbacks":true}`)
    expect(await sent('chat', path, given)).toMatchObject({ text: body(`{${KEPT}}`), listed: 'provider' })
  })
})

describe('router suffixes of a model name', () => {
  test.each([
    ['chat', 'chat:online', ':online'],
    ['chat', 'chat:nitro', ':nitro'],
    ['chat', 'chat:floor', ':floor'],
    ['chat', 'chat:nitro:online', ':nitro, :online'],
    ['messages', 'messages:online', ':online'],
    ['responses', 'responses:online', ':online'],
    ['rerank', 'rerank:floor', ':floor'],
  ] as const)(
    'a router suffix of a model name at %s is removed from %s and listed as dropped',
    async (protocol, model, listed) => {
      const [path, rest] = REQUESTS[protocol]
      const given = await sent(protocol, path, `{"model":"${model}",${rest}}`)
      expect(given.text).toBe(`{"model":"${protocol}",${rest}}`)
      expect(given.listed).toBe(listed)
    },
  )

  test.each([':', '%3A'])(
    'a router suffix, such as :online, is removed from the model name in the path of a Gemini request: %s',
    async (colon) => {
      const [, rest] = REQUESTS.gemini
      const path = `/v1beta/models/gemini${colon}online:streamGenerateContent?alt=sse`
      expect((await sent('gemini', path, `{${rest}}`)).path).toBe(
        '/v1/models/gemini:streamGenerateContent?alt=sse',
      )
    },
  )

  test('a router suffix, such as :online, is removed from the model name of embeddings and image requests', async () => {
    for (const [path, rest] of [
      ['/v1/embeddings', '"input":"hi"'],
      ['/v1/images/generations', '"prompt":"hi"'],
    ])
      expect((await sent('chat', path as string, `{"model":"chat:online",${rest}}`)).text).toBe(
        `{"model":"chat",${rest}}`,
      )
  })

  test('a router suffix, such as :online, that is removed from the model name of a converted request is listed as dropped', async () => {
    fixture.upstream.script('messages', wholeMessage([{ text: 'hi' }]))
    const answer = await post(REQUESTS.chat[0], `{"model":"messages:online",${REQUESTS.chat[1]}}`)
    expect(answer.status, answer.text).toBe(200)
    expect(JSON.parse(fixture.upstream.only('messages').text).model).toBe('messages')
    expect(answer.headers['x-gateway-dropped']).toBe(':online')
  })

  test('a router suffix, such as :online, of a model name is sent to a channel that has it in models or in model_mapping', async () => {
    const [path, rest] = REQUESTS.chat
    const own = await sent('chosen', path, `{"model":"chosen:online",${rest}}`)
    expect(own).toMatchObject({ text: `{"model":"chosen:online",${rest}}`, listed: undefined })
    const mapped = await sent('mapped', path, `{"model":"mapped",${rest}}`)
    expect(mapped).toMatchObject({ text: `{"model":"acme/m:online",${rest}}`, listed: undefined })
  })

  test('a model name with a router suffix, such as :online, is unknown where no channel has the name without the suffix', async () => {
    const [path, rest] = REQUESTS.chat
    for (const model of ['other:online', 'chosen:nitro', 'chat:latest', ':online']) {
      const answer = await post(path, `{"model":"${model}",${rest}}`)
      expect([model, answer.status, answer.json().error.code]).toEqual([model, 503, 'model_not_found'])
    }
  })

  test('a router suffix, such as :online, in a model name does not give an API key access to a model that it may not call', async () => {
    const [path, rest] = REQUESTS.chat
    expect((await sent('chat', path, `{"model":"chat:online",${rest}}`, 'one')).listed).toBe(':online')
    expect((await post(path, `{"model":"open:online",${rest}}`, 'one')).status).toBe(403)
  })
})

test.each([
  ['{"thinking_budget":0}', { thinkingBudget: 0 }],
  ['{"thinking_budget":2000,"include_thoughts":true}', { thinkingBudget: 2000 }],
  ['{"thinking_budget":-1}', { thinkingBudget: -1 }],
])('extra_body.google.thinking_config sets thinking for a Gemini channel: %s', async (config, expected) => {
  const body = `{"model":"gemini",${REQUESTS.chat[1]},"reasoning_effort":"high","extra_body":{"google":{"thinking_config":${config}}}}`
  const { text } = await sent('gemini', REQUESTS.chat[0], body)
  expect(JSON.parse(text).generationConfig.thinkingConfig).toMatchObject(expected)
})
