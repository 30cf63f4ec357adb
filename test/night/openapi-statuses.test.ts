import { textTool } from '@sluice/simulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Endpoint, isCallEndpoint } from '../../src/api/endpoint.ts'
import { openApiDocument } from '../../src/api/openapi.ts'
import { Browser } from '../fixtures/browser.ts'
import { type Behaviour, errorBody } from '../fixtures/behaviour.ts'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import { BatchClient, chatLine } from '../fixtures/batches.ts'
import { type Body, call, callEndless, retryWhileShed } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { formBytes, formCall, recordingParts, waveFile } from '../fixtures/form.ts'
import { answered, json } from '../fixtures/media-fixture.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'
import { startMcpServer, statelessRequest } from '../fixtures/mcp.ts'
import { messagesErrorText, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { cohereAnswer, scored } from '../fixtures/rerank-behaviour.ts'
import { describedPath, filledPath, isEndless, ROUTES } from '../fixtures/routes.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { type ScriptedProvider, startScriptedProvider } from '../fixtures/scripted-oidc.ts'
import { storingUpstream } from '../fixtures/stored-responses.ts'

type DescribedResponse = Record<string, { readonly content?: Record<string, unknown> }>
type Headers = Readonly<Record<string, string>>

const { paths } = openApiDocument(ROUTES) as {
  readonly paths: Record<string, Record<string, { readonly responses: DescribedResponse }>>
}
const nameOf = ({ method, path }: Endpoint): string => `${method} ${path}`
const describedOf = (route: Endpoint): DescribedResponse =>
  paths[describedPath(route)]?.[route.method.toLowerCase()]?.responses ?? {}

const accountOf = (id: number, accessToken: string): Headers => ({
  authorization: accessToken,
  'gateway-user': String(id),
})
const AS_ROOT = accountOf(1, ROOT.access_token)
const AS_ANN = accountOf(2, 'access-token-of-ann')
const AS_BANNED = accountOf(5, 'access-token-of-bob')
const KEY_OF_ANN = { authorization: 'Bearer sk-ann', 'x-goog-api-key': 'sk-ann' }
/** Root, with the second of its keys, because requests without prepared objects delete the first. */
const WITH_OWN_KEY = { ...AS_ROOT, 'gateway-key': '2' }
const KEY_OF_BANNED = { authorization: 'Bearer sk-bob', 'x-goog-api-key': 'sk-bob' }

/** Statuses that need conditions which a test cannot produce: slow senders, bugs, overload. */
const UNPROVOKED = new Set([408, 429, 500, 503])
/** The answer of this endpoint is small enough to be kept, so that a second request gets it. */
const UNPROVOKED_AT: Readonly<Record<string, number>> = { 'POST /v1/messages/batches': 409 }
const PASSED_ON = [400, 404, 409, 413, 422, 429, 529]

const SIGNING_SECRET = `whsec_${Buffer.alloc(32, 'key').toString('base64')}`

let fixture: Fixture
let provider: ScriptedProvider
/** The statuses seen, by endpoint. */
const seen = new Map<string, Set<number>>()
/** Responses that are missing in the description. */
const undescribed = new Set<string>()

beforeAll(async () => {
  const off = { requests: 0, window: '1s' }
  provider = await startScriptedProvider()
  const client = { name: 'corp', issuer: provider.issuer, client_id: 'sluice', client_secret: 'secret' }
  fixture = await startFixture((upstream) => ({
    login: { oidc: [client] },
    content_log: { what: 'metadata' },
    groups: { default: {}, filed: {} },
    mcp: {
      servers: [{ name: 'declared', url: 'http://127.0.0.1:9/mcp' }],
      toolsets: [{ name: 'declared', tools: ['declared.*'] }],
    },
    guards: [{ name: 'filed', do: 'flag', match: { secrets: true }, users: ['root'] }],
    alerts: [{ url: 'http://127.0.0.1:9/filed', secret: SIGNING_SECRET, events: ['channel.back'] }],
    options: {
      retries: 0,
      body_limit: '64KiB',
      metrics_token: 'token-of-metrics',
      idempotency: { most_answer: '1KiB' },
      local_batches: true,
    },
    rate_limits: { global: off, search: off, critical: off, relay: off },
    models: priced(['m', 'claude', 'sorter', 'native', 'flash']),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('claude', upstream.baseUrl('claude'), { protocol: 'messages' }),
      channel('sorter', upstream.baseUrl('sorter'), { protocol: 'rerank' }),
      channel('native', upstream.baseUrl('native'), { protocol: 'responses' }),
      channel('flash', upstream.baseUrl('flash'), { protocol: 'gemini' }),
    ],
    users: [
      { ...ROOT, tokens: [token('first'), token('second')] },
      user(2, 'ann', [token('ann'), token('other')], { access_token: 'access-token-of-ann' }),
      user(3, 'cas', []),
      user(4, 'dan', []),
      user(5, 'bob', [token('bob')], { access_token: 'access-token-of-bob', status: 2 }),
    ],
  }))
  for (const route of ROUTES) await provoke(route)
  await provokeBatches()
  await provokeByName()
  await provokeUpstreams()
  await provokePeople()
  await provokeStored()
  await provokeFiles()
  await provokeTools()
  await provokeSignIns()
})
afterAll(async () => {
  await fixture?.close()
  await provider?.[Symbol.asyncDispose]()
})

const essence = (type = ''): string => type.split(';')[0] ?? ''

/** Makes a request, and records the status. */
async function requestAndRecord(
  route: Endpoint,
  path: string,
  headers: Headers,
  body?: Body,
): Promise<string> {
  const {
    status,
    text,
    headers: said,
  } = await retryWhileShed(() =>
    (isEndless(route) ? callEndless : call)(fixture.gateway.url, body, {
      method: route.method,
      path,
      headers,
    }),
  )
  const types = Object.keys(describedOf(route)[status]?.content ?? {}).map(essence)
  // Redirects have no body.
  if (!(status in describedOf(route)) || (text !== '' && !types.includes(essence(said['content-type']))))
    undescribed.add(`${nameOf(route)}: ${status} ${said['content-type']}`)
  seen.set(nameOf(route), (seen.get(nameOf(route)) ?? new Set()).add(status))
  return text
}

/** Provokes errors common to all endpoints: authentication, parameters, queries, bodies. */
async function provoke(route: Endpoint): Promise<void> {
  const isKey = route.access.endsWith('key')
  const isKeyed = route.access === 'keyed-account'
  const [good, banned] = isKey ? [KEY_OF_ANN, KEY_OF_BANNED] : [isKeyed ? WITH_OWN_KEY : AS_ROOT, AS_BANNED]
  const path = filledPath(route, '999999')
  await requestAndRecord(route, path, {})
  await requestAndRecord(route, path, banned)
  if (!isKey) await requestAndRecord(route, path, AS_ANN)
  if (isKeyed) await requestAndRecord(route, path, { ...WITH_OWN_KEY, 'gateway-key': '999999' })
  await requestAndRecord(route, path, { 'sec-fetch-site': 'cross-site' })
  // This endpoint would invalidate the access token that the other requests use.
  if (route.path === '/api/user/token') return
  for (const id of ['abc', '%zz', '999999'])
    if (path !== route.path) await requestAndRecord(route, filledPath(route, id), good)
  for (const name of route.kind === 'json' ? queryNames(route.query) : [])
    for (const value of ['%00', '-1', 'abc', '%25%25', 'x'.repeat(3000)])
      await requestAndRecord(route, `${path}?${name}=${value}`, good)
  if (takesForm(route))
    for (const body of [formBytes([]), formBytes([{ name: 'model', content: 'x'.repeat(2 ** 17) }])])
      await requestAndRecord(route, path, { ...good, ...formCall(path, '', body).headers }, body)
  const takes = route.kind === 'json' ? route.body : isCallEndpoint(route)
  if (!takes) return void (await requestAndRecord(route, path, good))
  for (const body of ['{', '[]', {}, { id: 999_999, ids: [1], action: 'disable', key: 'x', value: 'y' }])
    await requestAndRecord(route, path, good, body)
  await requestAndRecord(route, path, { ...good, 'content-type': 'text/plain' }, 'x')
  await requestAndRecord(route, path, good, Buffer.alloc(2 ** 20 + 1, 0x20))
}

function takesForm(route: Endpoint): boolean {
  return isCallEndpoint(route) && route.formSchema !== undefined
}

/** The response to a request for another endpoint than a conversation; undefined for conversations. */
function smallAnswer({ path }: Endpoint): Behaviour | undefined {
  if (path.endsWith(':embedContent')) return json({ embedding: { values: [0.5] } })
  if (path.endsWith(':batchEmbedContents')) return json({ embeddings: [{ values: [0.5] }] })
  if (path.endsWith('/embeddings'))
    return json({
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding: [0.5] }],
      model: 'm',
      usage: { prompt_tokens: 1, total_tokens: 1 },
    })
  if (path.endsWith('/moderations'))
    return json({
      id: 'modr-1',
      model: 'm',
      results: [{ flagged: false, categories: {}, category_scores: {} }],
    })
  return undefined
}

/** A request for images or audio that can be served, and its response; undefined for other routes. */
function mediaCall(route: Endpoint): { headers: Headers; body: Body; behaviour: Behaviour } | undefined {
  const path = route.path.replace('/api/playground/', '/v1/')
  if (!takesForm(route) || path === '/v1/images/edits') {
    if (!path.startsWith('/v1/images/') && path !== '/v1/audio/speech') return undefined
    const behaviour = path.startsWith('/v1/images/')
      ? json({ data: [{ url: 'https://images.example/1.png' }] })
      : answered('audio/mpeg', 'sound')
    return { headers: {}, body: { model: 'm', prompt: 'x', input: 'x' }, behaviour }
  }
  const body = formBytes(recordingParts('m', waveFile(1)))
  const answer = path.startsWith('/v1/images/') ? { data: [{ b64_json: 'x' }] } : { text: 'x' }
  return { headers: formCall(path, '', body).headers ?? {}, body, behaviour: json(answer) }
}

function queryNames(query: unknown): string[] {
  const shape = query && typeof query === 'object' && 'shape' in query ? query.shape : {}
  return Object.keys(shape as object)
}

/** Provokes successes and errors that need prepared objects. */
async function provokeByName(): Promise<void> {
  const at = async (name: string, headers: Headers, body?: Body, id: number | string = '', query = '') => {
    const route = ROUTES.find((one) => nameOf(one) === name)
    if (!route) throw new Error(`there is no ${name}`)
    const text = await requestAndRecord(route, filledPath(route, String(id)) + query, headers, body)
    return text.startsWith('{') ? JSON.parse(text) : undefined
  }
  const made = {
    name: 'made',
    type: 1,
    key: 'sk-x',
    base_url: fixture.upstream.baseUrl('x'),
    models: 'm',
    group: 'default',
  }
  const { data } = await at('POST /api/channel/', AS_ROOT, made)
  const id = data.ids[0]
  await at('POST /api/channel/', AS_ROOT, { ...made, name: 'm' })
  const { data: list } = await at('GET /api/channel/', AS_ROOT)
  const declared = list.items.find((one: { name: string }) => one.name === 'm').id
  await at('GET /api/channel/:id', AS_ROOT, undefined, id)
  await at('GET /api/channel/test/:id', AS_ROOT, undefined, declared)
  for (const one of [id, declared, 999_999]) {
    const channel = { id: one }
    await at('POST /api/channel/test', AS_ROOT, { channel })
    await at('POST /api/channel/models', AS_ROOT, { channel })
  }
  for (const one of [id, declared]) await at('POST /api/channel/:id/key', AS_ROOT, undefined, one)
  for (const one of [id, declared]) await at('POST /api/channel/:id/keys', AS_ROOT, { key: 'sk-y' }, one)
  const { data: keys } = await at('GET /api/channel/:id/keys', AS_ROOT, undefined, id)
  const removal = ROUTES.find((one) => nameOf(one) === 'DELETE /api/channel/:id/keys/:key_id') as Endpoint
  const keyIds = [keys[0].id, '0'.repeat(keys[0].id.length)]
  for (const one of [id, declared])
    for (const key of keyIds)
      await at('PUT /api/channel/:id/keys', AS_ROOT, { id: key, state: 'retired' }, one)
  for (const one of [id, declared])
    for (const key of keyIds) await requestAndRecord(removal, `/api/channel/${one}/keys/${key}`, AS_ROOT)
  for (const one of [id, 999_999]) await at('PUT /api/channel/:id/drain', AS_ROOT, { on: true }, one)
  for (const one of [null, 999_999])
    await at('POST /api/routing/simulate', AS_ROOT, { model: 'm', token_id: one })
  for (const one of [id, declared]) await at('PUT /api/channel/', AS_ROOT, { ...made, id: one })
  for (const one of [id, declared]) await at('DELETE /api/channel/:id', AS_ROOT, undefined, one)
  for (const one of [id, declared]) await at('POST /api/channel/batch', AS_ROOT, { ids: [one] })
  await at('PUT /api/option/', AS_ROOT, { key: 'general_setting.quota_display_type', value: 'CNY' })
  await at('PUT /api/option/', AS_ROOT, { key: 'RetryTimes', value: '3' })
  for (const model of ['m', 'unheard-of']) await at('PUT /api/models/price', AS_ROOT, { model, price: null })
  for (const model of ['m', 'unheard-of'])
    await at('PUT /api/models/prices', AS_ROOT, { items: [{ model, price: null }] })
  const added = { name: 'a', expired_time: -1, remain_quota: 0, unlimited_quota: true }
  await at('POST /api/token/', AS_ROOT, added)
  const receiver = { url: 'http://127.0.0.1:9/alerts', events: ['quota.low'] }
  const { data: alert } = await at('POST /api/alert/', AS_ROOT, receiver)
  await at('PUT /api/alert/', AS_ROOT, { ...receiver, id: alert.id })
  await at('POST /api/alert/:id/test', AS_ROOT, undefined, alert.id)
  const [filed] = (await at('GET /api/alert/', AS_ROOT)).data as { id: string }[]
  await at('PUT /api/alert/', AS_ROOT, { ...receiver, id: filed?.id })
  for (const one of [filed?.id, alert.id, alert.id])
    await at('DELETE /api/alert/:id', AS_ROOT, undefined, one)
  for (const name of ['PUT /api/alert/', 'POST /api/alert/:id/test'])
    await at(name, AS_ROOT, { ...receiver, id: alert.id }, alert.id)
  const guard = { name: 'added', do: 'flag', match: { secrets: true } }
  await at('POST /api/guards', AS_ROOT, guard)
  for (const name of ['added', 'filed', 'none']) await at('PUT /api/guards', AS_ROOT, { ...guard, name })
  for (const name of ['added', 'filed', 'added'])
    await at('DELETE /api/guards/:name', AS_ROOT, undefined, name)
  for (const named of [['filed'], ['none']])
    await at('POST /api/guards/test', AS_ROOT, { text: 'x', guards: named })
  for (const more of [{ 'content-encoding': 'rot13' }, { 'content-length': String(2 ** 29 + 1) }, {}])
    await at('POST /api/import', { ...AS_ROOT, ...more }, 'neither a database nor a configuration')
  const configuration =
    'model_list: [{ model_name: lite, litellm_params: { model: openai/lite, api_key: k } }]'
  const { data: upload } = await at('POST /api/import', AS_ROOT, configuration)
  for (const one of [upload.id, '0'.repeat(32)])
    await at('POST /api/import/:id/apply', AS_ROOT, undefined, one)
  const { data: tokens } = await at('GET /api/token/', AS_ROOT)
  const own = tokens.items[0].id
  await at('GET /api/token/:id', AS_ROOT, undefined, own)
  const { data: revealed } = await at('POST /api/token/:id/key', AS_ROOT, undefined, own)
  fixture.upstream.script('m', { kind: 'whole' })
  const asked = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
  const key = String(revealed.key).replace(/^(?:sk-)?/, 'sk-')
  await at('POST /v1/chat/completions', { authorization: `Bearer ${key}` }, asked)
  const { data: logged } = await at('GET /api/log/self', AS_ROOT)
  for (const name of ['GET /api/log/:id', 'GET /api/log/self/:id'])
    await at(name, AS_ROOT, undefined, logged.items[0].request_id)
  const content = 'GET /api/content/:id'
  while (!seen.get(content)?.has(200)) await at(content, AS_ROOT, undefined, logged.items[0].request_id)
  await at('DELETE /api/content', AS_ROOT, undefined, '', '?user=999999')
  for (const name of ['GET /api/log/values', 'GET /api/log/self/values'])
    await at(name, AS_ROOT, undefined, '', '?field=model')
  await at('POST /api/usage/what-if', AS_ROOT, { from: 0, to: 4_000_000_000 })
  fixture.upstream.script('m', { kind: 'silence' })
  const silent = { path: '/v1/chat/completions', headers: { authorization: `Bearer ${key}` } }
  const stopped = call(fixture.gateway.url, asked, silent)
  let running: readonly { readonly id: string }[] = []
  while (running.length === 0) running = (await at('GET /api/running', AS_ROOT)).data.items
  for (const one of [running[0]?.id ?? '', logged.items[0].request_id])
    await at('POST /api/running/:id/stop', AS_ROOT, undefined, one)
  await stopped
  fixture.upstream.script('m', { kind: 'whole' })
  await at('POST /api/token/batch/keys', AS_ROOT, { ids: [own] })
  await at('PUT /api/token/', AS_ROOT, { id: own, name: 'b' })
  await at('PUT /api/token/', AS_ROOT, { id: own, name: 'c', version: 'an old one' })
  await at('DELETE /api/token/:id', AS_ROOT, undefined, own)
  await at('POST /api/token/batch', AS_ROOT, { ids: [own] })
  await at('POST /api/user/', AS_ROOT, { username: 'eve', password: 'password of eve' })
  await at('PUT /api/user/', AS_ROOT, { id: 3, password: 'password of cas' })
  await at('PUT /api/user/', AS_ROOT, { id: 3, remark: 'x', version: 'an old one' })
  await at('PUT /api/user/self', AS_ROOT, { display_name: 'Root' })
  await at('POST /api/user/login', {}, { username: 'cas', password: 'another password' })
  const credentials = { username: 'cas', password: 'password of cas' }
  await at('POST /api/user/login', {}, credentials)
  await at('POST /api/user/login', { 'sec-fetch-site': 'cross-site' }, credentials)
  await at('GET /api/user/:id', AS_ROOT, undefined, 3)
  for (const user of [3, 999_999]) await at('POST /api/user/manage', AS_ROOT, { id: user, action: 'disable' })
  await at('GET /api/user/:id/tokens', AS_ROOT, undefined, 3)
  await at('GET /api/user/:id/tokens/stopped', AS_ROOT, undefined, 3)
  const { data: issued } = await at('POST /api/user/:id/tokens', AS_ROOT, { ...added, name: 'x' }, 3)
  for (const user of [3, 999_999]) {
    await at('POST /api/user/:id/tokens', AS_ROOT, { ...added, name: 'y' }, user)
    await at('PUT /api/user/:id/tokens', AS_ROOT, { id: issued.id, status: 2 }, user)
  }
  await at('DELETE /api/user/:id', AS_ROOT, undefined, 4)
  await at('GET /v1/models/:id*', KEY_OF_ANN, undefined, 'm')
  await at('GET /v1beta/models/:id*', KEY_OF_ANN, undefined, 'm')
  await at('GET /api/user/token', AS_ANN)
  await at('GET /metrics', { authorization: 'Bearer token-of-metrics' })
}

/** Makes, changes and removes groups, invitations and keys, and provokes the errors of objects that are missing or declared. */
async function provokePeople(): Promise<void> {
  const at = async (name: string, path: string, headers: Headers, body?: Body) => {
    const route = ROUTES.find((one) => nameOf(one) === name)
    if (!route) throw new Error(`there is no ${name}`)
    const text = await requestAndRecord(route, path, headers, body)
    return text.startsWith('{') ? JSON.parse(text).data : undefined
  }
  for (const group of ['added', 'added', 'filed'])
    await at('POST /api/group/', '/api/group/', AS_ROOT, { group })
  for (const group of ['added', 'filed', 'none'])
    await at('PUT /api/group/', '/api/group/', AS_ROOT, { group, ratio: '2' })
  for (const group of ['added', 'filed', 'none', 'default'])
    await at('DELETE /api/group/', `/api/group/?group=${group}`, AS_ROOT)
  const invitation = await at('POST /api/user/invite', '/api/user/invite', AS_ROOT, {})
  const accepting = { token: invitation.link.split('#')[1], username: 'invited', password: 'a password' }
  for (const body of [{ ...accepting, username: 'ann' }, accepting, accepting])
    await at('POST /api/user/invite/accept', '/api/user/invite/accept', {}, body)
  const fromElsewhere = { 'sec-fetch-site': 'cross-site' }
  await at('POST /api/user/invite/accept', '/api/user/invite/accept', fromElsewhere, accepting)
  const { id } = await at('POST /api/user/invite', '/api/user/invite', AS_ROOT, {})
  for (const one of [id, id]) await at('DELETE /api/user/invite/:id', `/api/user/invite/${one}`, AS_ROOT)
  const { items: own } = await at('GET /api/token/', '/api/token/', AS_ROOT)
  const last = own.at(-1).id
  await at('POST /api/token/:id/rotate', `/api/token/${last}/rotate`, AS_ROOT)
  await at('GET /api/user/:id/tokens', '/api/user/2/tokens', AS_ROOT)
  const given = { name: 'given', expired_time: -1, remain_quota: 0, unlimited_quota: true }
  const key = await at('POST /api/user/:id/tokens', '/api/user/2/tokens', AS_ROOT, given)
  for (const one of [key.id, 999_999]) {
    const path = `/api/user/2/tokens/${one}`
    await at('GET /api/user/:id/tokens/:token_id', path, AS_ROOT)
    await at('POST /api/user/:id/tokens/:token_id/rotate', `${path}/rotate`, AS_ROOT)
    await at('PUT /api/user/:id/tokens', '/api/user/2/tokens', AS_ROOT, { id: one, name: 'renamed' })
  }
  const stale = { id: key.id, name: 'again', version: 'an old one' }
  await at('PUT /api/user/:id/tokens', '/api/user/2/tokens', AS_ROOT, stale)
  for (const one of [key.id, key.id])
    await at('DELETE /api/user/:id/tokens/:token_id', `/api/user/2/tokens/${one}`, AS_ROOT)
}

/** Signs in at a provider, is refused because the name exists; links, unlinks, ends a session. */
async function provokeSignIns(): Promise<void> {
  const named = (path: string, method?: string): Endpoint => {
    const route = ROUTES.find((one) => one.path === path && (method ?? one.method) === one.method)
    if (!route) throw new Error(`there is no ${path}`)
    return route
  }
  const start = named('/api/user/oidc/:name')
  const callback = named('/api/user/oidc/:name/callback')
  for (const name of ['pat', 'ann']) {
    provider.person = { sub: `subject of ${name}`, preferred_username: name }
    const browser = new Browser()
    const location = await browser.locationOf(`${fixture.gateway.url}/api/user/oidc/corp`)
    await requestAndRecord(start, '/api/user/oidc/corp', {})
    const { pathname, search } = new URL(provider.authorize(location))
    const cookie = [...browser.cookies].map(([key, value]) => `${key}=${value}`).join('; ')
    await requestAndRecord(callback, pathname + search, { cookie })
  }
  await requestAndRecord(callback, '/api/user/oidc/corp/callback', {})
  const login = { method: 'POST', path: '/api/user/login' }
  const person = new Browser()
  person.keep(await call(fixture.gateway.url, { access_token: ROOT.access_token }, login))
  const link = named('/api/user/self/identities', 'POST')
  await requestAndRecord(link, link.path, { cookie: person.session.cookie }, { provider: 'corp' })
  for (const sub of ['root one', 'root two']) {
    provider.person = { sub, preferred_username: 'root' }
    const headers = { cookie: person.session.cookie }
    const begun = await call(
      fixture.gateway.url,
      { provider: 'corp' },
      { method: 'POST', path: link.path, headers },
    )
    person.keep(begun)
    await person.get(provider.authorize(JSON.parse(begun.text).data.url))
  }
  const unlink = named('/api/user/self/identities', 'DELETE')
  for (const subject of ['root one', 'nobody']) {
    const { issuer } = provider
    const query = new URLSearchParams({ issuer, subject }).toString()
    await requestAndRecord(unlink, `${unlink.path}?${query}`, { cookie: person.session.cookie })
  }
  const list = await call(fixture.gateway.url, undefined, {
    method: 'GET',
    path: '/api/user/self/sessions',
    headers: AS_ROOT,
  })
  const end = named('/api/user/self/sessions/:id')
  for (const id of [JSON.parse(list.text).data[0].id, '0'.repeat(64)])
    await requestAndRecord(end, filledPath(end, id), AS_ROOT)
  const ofUser = named('/api/user/:id/identities', 'DELETE')
  await requestAndRecord(named('/api/user/:id/identities', 'GET'), '/api/user/1/identities', AS_ROOT)
  for (const subject of ['root two', 'nobody']) {
    const query = new URLSearchParams({ issuer: provider.issuer, subject }).toString()
    await requestAndRecord(ofUser, `/api/user/1/identities?${query}`, AS_ROOT)
  }
}

/** Makes a response, and every request about it. */
async function provokeStored(): Promise<void> {
  const provider = storingUpstream('native')
  fixture.upstream.decide('native', (request) => provider.decision(request))
  const options = { path: '/v1/responses', headers: KEY_OF_ANN }
  const made = await call(fixture.gateway.url, { model: 'native', input: 'hi' }, options)
  const { id } = JSON.parse(made.text)
  const stored = ROUTES.filter(({ path }) => path.startsWith('/v1/responses/:id'))
  const behaviours = PASSED_ON.map((status) => ({ kind: 'status', status, body: errorBody('no') }) as const)
  for (const route of stored)
    for (const behaviour of behaviours) {
      fixture.upstream.script('native', behaviour)
      await requestAndRecord(route, route.path.replace(':id', id), KEY_OF_ANN)
    }
  fixture.upstream.decide('native', (request) => provider.decision(request))
  const isDelete = ({ method }: Endpoint): number => Number(method === 'DELETE')
  for (const route of stored.toSorted((a, b) => isDelete(a) - isDelete(b))) {
    await requestAndRecord(route, route.path.replace(':id', id), KEY_OF_ANN)
    if (!route.path.endsWith(':id') || isDelete(route)) continue
    await requestAndRecord(route, `${route.path.replace(':id', id)}?stream=true`, KEY_OF_ANN)
  }
}

/** Calls a tool, and manages servers, toolsets and the definition of a tool. */
async function provokeTools(): Promise<void> {
  const description = { now: 'reads' }
  const server = await startMcpServer({
    name: 'tools',
    versions: ['2026-07-28'],
    tools: () => [textTool({ name: 'read', description: description.now }, () => 'content')],
  })
  const send = (name: string, path: string, headers: Headers, body?: Body): Promise<string> => {
    const route = ROUTES.find((one) => nameOf(one) === name)
    if (!route) throw new Error(`there is no ${name}`)
    return requestAndRecord(route, path, headers, body)
  }
  const [servers, toolsets] = ['/api/mcp/servers', '/api/mcp/toolsets']
  const added = { name: 'tools', url: server.url }
  for (const body of [added, added]) await send(`POST ${servers}`, servers, AS_ROOT, body)
  await send(`GET ${servers}`, servers, AS_ROOT)
  for (const name of ['tools', 'declared', 'unknown'])
    await send(`PUT ${servers}`, servers, AS_ROOT, { ...added, name })
  for (const name of ['all', 'all'])
    await send(`POST ${toolsets}`, toolsets, AS_ROOT, { name, tools: ['*.*'] })
  await send(`GET ${toolsets}`, toolsets, AS_ROOT)
  for (const name of ['all', 'declared', 'unknown'])
    await send(`PUT ${toolsets}`, toolsets, AS_ROOT, { name, tools: ['*.*'] })
  for (const [route, path] of [
    ['POST /mcp', '/mcp'],
    ['POST /mcp/:toolset', '/mcp/all'],
    ['POST /mcp/:toolset', '/mcp/unknown'],
  ] as const) {
    const listing = statelessRequest('tools/list')
    await send(route, path, { ...KEY_OF_ANN, ...listing.headers }, listing.body)
    const calling = statelessRequest('tools/call', { name: 'tools_read' })
    await send(route, path, { ...KEY_OF_ANN, ...calling.headers }, calling.body)
    await send(route, path, KEY_OF_ANN, { jsonrpc: '2.0', method: 'notifications/initialized' })
    await send(route, path, { ...KEY_OF_ANN, origin: 'https://evil.example' }, listing.body)
    const other = statelessRequest('other')
    await send(route, path, { ...KEY_OF_ANN, ...other.headers }, other.body)
    await send(route, path, KEY_OF_ANN, '{')
    await send(route, path, { ...KEY_OF_ANN, 'content-type': 'text/plain' }, 'x')
    await send(route, path, KEY_OF_ANN, Buffer.alloc(2 ** 20 + 1, 0x20))
  }
  description.now = 'reads more'
  const listed = JSON.parse(await send('GET /api/mcp/tools', '/api/mcp/tools', AS_ROOT)) as {
    data: { digest: string }[]
  }
  for (const [tool, digest] of [
    ['read', 'another'],
    ['unknown', 'another'],
    ['read', listed.data[0]?.digest],
  ])
    await send('POST /api/mcp/approve', '/api/mcp/approve', AS_ROOT, { server: 'tools', tool, digest })
  for (const [list, name] of [
    [servers, 'tools'],
    [toolsets, 'all'],
  ] as const)
    for (const named of ['declared', name, name])
      await send(`DELETE ${list}/:name`, `${list}/${named}`, AS_ROOT)
  await server.close()
}

/** Uploads files, reads and deletes one, and provokes the errors of an upload. */
async function provokeFiles(): Promise<void> {
  const routes = ROUTES.filter(({ path }) => path.startsWith('/v1/files'))
  const routeOf = (name: string): Endpoint => {
    const route = routes.find((one) => nameOf(one) === name)
    if (!route) throw new Error(`there is no ${name}`)
    return route
  }
  const upload = (content: string, filename: string, more: Headers = {}): Promise<string> => {
    const body = formBytes([
      { name: 'purpose', content: 'batch' },
      { name: 'file', content, filename },
    ])
    const { headers = {} } = formCall('/v1/files', '', body)
    return requestAndRecord(
      routeOf('POST /v1/files'),
      '/v1/files',
      { ...KEY_OF_ANN, ...headers, ...more },
      body,
    )
  }
  const { id } = JSON.parse(await upload('{}', 'a.jsonl', { 'idempotency-key': 'small' }))
  await upload('[]', 'a.jsonl', { 'idempotency-key': 'small' })
  // The answer is so large that it is not kept for the second upload.
  for (let times = 0; times < 2; times++) await upload('{}', 'ü'.repeat(500), { 'idempotency-key': 'large' })
  await upload('{}', 'a.jsonl', { 'content-length': '300000000' })
  await requestAndRecord(routeOf('GET /v1/files'), '/v1/files?limit=0', KEY_OF_ANN)
  for (const name of [
    'GET /v1/files',
    'GET /v1/files/:id',
    'GET /v1/files/:id/content',
    'DELETE /v1/files/:id',
  ]) {
    const route = routeOf(name)
    await requestAndRecord(route, filledPath(route, id), KEY_OF_ANN)
  }
}

/** Makes batches of both APIs, reads and cancels them while they run and after their ends. */
async function provokeBatches(): Promise<void> {
  const at = async (name: string, headers: Headers, id = '', body?: Body, query = ''): Promise<string> => {
    const route = ROUTES.find((one) => nameOf(one) === name)
    if (!route) throw new Error(`there is no ${name}`)
    return requestAndRecord(route, filledPath(route, id) + query, headers, body)
  }
  const client = new BatchClient(fixture.gateway.url, 'sk-ann')
  /** Makes a batch with answers that are kept, one whose answer is too large for it, and refused ones. */
  const make = async (name: string, body: object, other: object): Promise<string> => {
    const [small, large] = ['small', 'large'].map((size) => ({ 'idempotency-key': `${size} ${name}` }))
    const { id } = JSON.parse(await at(name, { ...KEY_OF_ANN, ...small }, '', body))
    await at(name, { ...KEY_OF_ANN, ...small }, '', other)
    for (let times = 0; times < 2; times++) await at(name, { ...KEY_OF_ANN, ...large }, '', other)
    return id
  }
  fixture.upstream.script('m', { kind: 'silence' })
  const openai = {
    input_file_id: await client.upload([chatLine('a')]),
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
    metadata: { allow_local: 'true' },
  }
  const noted = Object.fromEntries(['a', 'b', 'c'].map((name) => [name, 'x'.repeat(500)]))
  const running = await make('POST /v1/batches', openai, {
    ...openai,
    metadata: { ...openai.metadata, ...noted },
  })
  await at('POST /v1/batches', KEY_OF_ANN, '', { ...openai, input_file_id: 'file-unknown' })
  const params = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }
  const requests = [{ custom_id: 'a', params }]
  const name = 'POST /v1/messages/batches'
  const message = await make(name, { requests }, { requests: [{ custom_id: 'b', params }] })
  await at(name, { ...KEY_OF_ANN, 'content-length': String(2 ** 28 + 1) }, '', '{}')
  await at('DELETE /v1/messages/batches/:id', KEY_OF_ANN, message)
  await at('POST /api/batches/:id/cancel', AS_ROOT, running)
  await client.ended(running)
  for (const id of [message, message]) {
    await at('POST /v1/messages/batches/:id/cancel', KEY_OF_ANN, id)
    await client.ended(id)
  }
  for (const list of ['GET /v1/batches', 'GET /v1/messages/batches']) {
    await at(list, KEY_OF_ANN)
    await at(list, KEY_OF_ANN, '', undefined, '?limit=0')
  }
  await at('GET /v1/batches/:id', KEY_OF_ANN, running)
  await at('GET /v1/messages/batches/:id', KEY_OF_ANN, message)
  await at('GET /v1/messages/batches/:id/results', KEY_OF_ANN, message)
  const longId = 'x'.repeat(65)
  for (const one of [running, longId]) await at('GET /api/batches/:id', AS_ROOT, one)
  for (const list of ['results', 'errors']) await at(`GET /api/batches/:id/${list}`, AS_ROOT, longId)
  await at('POST /api/batches/:id/cancel', AS_ROOT, running)
  const { id } = await client.make([chatLine('again')])
  for (let times = 0; times < 2; times++) {
    await at('POST /v1/batches/:id/cancel', KEY_OF_ANN, id)
    await client.ended(id)
  }
  await at('DELETE /v1/messages/batches/:id', KEY_OF_ANN, message)
  fixture.upstream.script('m', wholeChat({ text: 'Hello.' }))
  const own = new BatchClient(fixture.gateway.url, 'sk-second')
  const answered = await own.make([chatLine('answered')])
  await own.ended(answered.id)
  await at('GET /api/batches/:id/results', AS_ROOT, answered.id)
  fixture.upstream.script('m', { kind: 'status', status: 400, body: errorBody('no') })
  const refused = await own.make([chatLine('refused')])
  await own.ended(refused.id)
  await at('GET /api/batches/:id/errors', AS_ROOT, refused.id)
}

/** The model whose channel speaks the protocol of a route that cannot be converted; otherwise any model. */
function laneFor({ area, path }: Endpoint): 'claude' | 'sorter' | 'native' | 'flash' | 'm' {
  if (/:(?:countTokens|embedContent|batchEmbedContents)$/.test(path)) return 'flash'
  if (path.startsWith('/v1/responses/')) return 'native'
  return area === 'messages' ? 'claude' : area === 'rerank' ? 'sorter' : 'm'
}

/** Makes successful calls, and provokes every upstream error that is passed on. */
async function provokeUpstreams(): Promise<void> {
  const messages = [{ role: 'user', content: 'hi' }]
  for (const route of ROUTES) {
    if (!isCallEndpoint(route)) continue
    const lane = laneFor(route)
    const counted = { kind: 'whole', body: '{"input_tokens":3}' } as const
    const behaviour = {
      claude: route.path.endsWith('count_tokens') ? counted : wholeMessage([{ text: 'Hello.' }]),
      sorter: cohereAnswer(scored(1)),
      m: route.path.includes(':stream') ? streamedChat({ text: 'Hello.' }) : wholeChat({ text: 'Hello.' }),
      flash: { kind: 'whole', body: '{"totalTokens":3}' } as const,
      native: route.path.endsWith('input_tokens') ? counted : wholeResponse({ text: 'Hello.' }),
    }[lane]
    const media = mediaCall(route)
    const body = media?.body ?? {
      model: lane,
      max_tokens: 5,
      messages,
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
      content: { parts: [{ text: 'hi' }] },
      requests: [{ model: `models/${lane}`, content: { parts: [{ text: 'hi' }] } }],
      input: 'hi',
      query: 'q',
      documents: ['a'],
    }
    const credentials = route.access === 'keyed-account' ? WITH_OWN_KEY : KEY_OF_ANN
    const headers = { ...credentials, ...media?.headers }
    const path = filledPath(route, lane)
    fixture.upstream.script(lane, media?.behaviour ?? smallAnswer(route) ?? behaviour)
    await requestAndRecord(route, path, headers, body)
    for (const status of PASSED_ON) {
      const text = lane === 'claude' ? messagesErrorText('some_error', 'no') : errorBody('no')
      fixture.upstream.script(lane, { kind: 'status', status, body: text })
      await requestAndRecord(route, path, headers, body)
    }
  }
}

describe('the described statuses of an operation', () => {
  test('every status that an operation returns in the tests is in the OpenAPI description', () => {
    expect([...undescribed]).toEqual([])
  })

  test.each(ROUTES.map((route) => [nameOf(route), route] as const))(
    'every status in the OpenAPI description of %s occurs in the tests',
    (name, route) => {
      const described = Object.keys(describedOf(route)).map(Number)
      const missing = described.filter(
        (status) => !seen.get(name)?.has(status) && !UNPROVOKED.has(status) && UNPROVOKED_AT[name] !== status,
      )
      expect(missing).toEqual([])
    },
  )

  test('the OpenAPI description has a status of success for every implemented operation', () => {
    const without = ROUTES.filter(
      (route) => !Object.keys(describedOf(route)).some((status) => Number(status) < 400),
    )
    expect(without.map(nameOf)).toEqual(['DELETE /v1/models/:id*'])
  })
})

describe('too many requests', () => {
  let limited: Fixture
  beforeAll(async () => {
    const once = { requests: 1, window: '1h' }
    limited = await startFixture((upstream) => ({
      rate_limits: { global: once, relay: once },
      options: { trusted_proxies: ['127.0.0.1'] },
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }))
  })
  afterAll(() => limited?.close())

  test.each(ROUTES.map((route, index) => [nameOf(route), route, index] as const))(
    'an operation has a rate limit exactly if its OpenAPI description has the status 429: %s',
    async (_, route, index) => {
      const path = filledPath(route, '999999')
      const options = { method: route.method, path, headers: { 'x-forwarded-for': `198.51.100.${index}` } }
      await call(limited.gateway.url, undefined, options)
      const { status } = await call(limited.gateway.url, undefined, options)
      expect(status === 429).toBe(429 in describedOf(route))
    },
  )
})
