import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { PROXY_PASSWORD, PROXY_USER, type ProxyServer, startHttpProxy } from '../fixtures/proxy-servers.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'

const UPSTREAMS = ['chat', 'messages', 'responses'] as const

let fixture: Fixture
let proxy: ProxyServer
beforeAll(async () => {
  const routes = new Map<string, number>()
  proxy = await startHttpProxy(routes)
  fixture = await startFixture((upstream) => {
    routes.set('openrouter.ai:80', Number(new URL(upstream.baseUrl('x')).port))
    const through = `http://${PROXY_USER}:${encodeURIComponent(PROXY_PASSWORD)}@${proxy.address}`
    return {
      models: priced([...UPSTREAMS, 'other', 'allowing']),
      channels: [
        ...UPSTREAMS.map((protocol) =>
          channel(protocol, `http://openrouter.ai/${protocol}/v1`, { protocol, proxy: through }),
        ),
        channel('other', upstream.baseUrl('other')),
        channel('allowing', upstream.baseUrl('allowing'), { allow: ['provider'] }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }
  })
})
afterAll(async () => {
  await fixture?.close()
  await proxy?.close()
})

const CLIENTS = {
  chat: ['/v1/chat/completions', '"messages":[{"role":"user","content":"hi"}]'],
  messages: ['/v1/messages', '"max_tokens":5,"messages":[{"role":"user","content":"hi"}]'],
  responses: ['/v1/responses', '"input":"hi"'],
  gemini: ['', '"contents":[{"parts":[{"text":"hi"}]}]'],
} as const
type Client = keyof typeof CLIENTS

const ANSWERS: Readonly<Record<string, Behaviour>> = {
  messages: wholeMessage([{ text: 'hi' }]),
  responses: wholeResponse({ text: 'hi' }),
}
const ROADS = (Object.keys(CLIENTS) as Client[]).flatMap((client) =>
  UPSTREAMS.filter((name) => name !== client).map((name) => [client, name] as const),
)

/** The `provider` that an upstream received for a client's value, and whether it is listed as left out. */
async function converted(
  client: Client,
  model: string,
  provider: string,
): Promise<{ readonly got: string | undefined; readonly isListed: boolean }> {
  const [path, rest] = CLIENTS[client]
  fixture.upstream.script(model, ANSWERS[model] ?? { kind: 'whole' })
  const named = client === 'gemini' ? '' : `"model":"${model}",`
  const answer = await call(fixture.gateway.url, `{${named}${rest},"provider":${provider}}`, {
    path: path || `/v1beta/models/${model}:generateContent`,
    key: 'ann',
    headers: { 'x-goog-api-key': 'sk-ann' },
  })
  expect(answer.status, answer.text).toBe(200)
  const { text } = fixture.upstream.only(model)
  expect(JSON.parse(text)).toBeTypeOf('object')
  const listed = String(answer.headers['x-gateway-dropped'] ?? '').split(', ')
  return { got: /"provider":(.*)\}$/.exec(text)?.[1], isListed: listed.includes('provider') }
}

const KEPT =
  '"data_collection":"deny","zdr":true,"ignore":["a"],"require_parameters":true,"quantizations":["fp8"],"max_price":{"prompt":1.0}'

test.each(ROADS)(
  "OpenRouter's field provider reaches openrouter.ai with only those members that restrict routing: %s to %s",
  async (client, model) => {
    const kept = `{ ${KEPT} }`
    expect(await converted(client, model, kept)).toEqual({ got: kept, isListed: false })
    const more = `{"order":["a"],${KEPT},"sort":"price"}`
    expect(await converted(client, model, more)).toEqual({ got: `{${KEPT}}`, isListed: true })
    const nothing = { got: undefined, isListed: true }
    expect(await converted(client, model, '{"only":["a"]}')).toEqual(nothing)
  },
)

test("OpenRouter's field provider is left out of converted requests to other hosts, except on channels that allow it", async () => {
  expect(await converted('messages', 'other', `{${KEPT}}`)).toEqual({ got: undefined, isListed: true })
  const whole = '{ "order":["a"],"zdr":true }'
  expect(await converted('messages', 'allowing', whole)).toEqual({ got: whole, isListed: false })
})
