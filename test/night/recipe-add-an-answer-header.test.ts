import { afterAll, beforeAll, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { type Body, call, type CallOptions, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'
import { codeBlocks } from '../recipes/recipe.ts'

const [NAME = '', VALUE = ''] = codeBlocks('recipes/add-an-answer-header', 'ts')
const FILE = 'src/http/answer-headers.ts'
const NAMES = "= ['request-id',"
const RETURN = '  return headers\n'
const WITH_VALUE = { file: FILE, text: RETURN, by: VALUE + RETURN }
const WITH_NAME = { file: FILE, text: NAMES, by: `= [${NAME} 'request-id',` }

const PAGE = { origin: 'https://app.example.com' }

let copy: PatchedCopy
let fixture: Fixture
beforeAll(async () => {
  copy = await patchedProgram([WITH_NAME, WITH_VALUE])
  fixture = await startFixture(
    (upstream) => ({
      options: { cache: { ttl: '1h' }, keep_responses: '1h', cors: { origins: [PAGE.origin] } },
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { root: copy.root },
  )
  fixture.upstream.decide('m', ({ text }) =>
    text.includes('"stream":true')
      ? { kind: 'stream', usage: usageText(10, 5) }
      : { kind: 'whole', content: 'yes', usage: usageText(10, 5) },
  )
})
afterAll(async () => {
  await fixture?.close()
  copy?.discard()
})

const make = (path: string, body: Body, options: CallOptions = {}): Promise<FullResponse> =>
  call(fixture.gateway.url, body, { key: 'ann', path, ...options })

const CHAT = '/v1/chat/completions'
const get = (path: string, options: CallOptions = {}): Promise<FullResponse> =>
  make(path, undefined, { method: 'GET', ...options })

const ANSWERS = {
  'a whole answer': () => make(CHAT, ask('m')),
  'a stream': () => make(CHAT, askStream('m')),
  'a converted answer': () => make('/v1/messages', { ...ask('m'), max_tokens: 9 }),
  'an answer from the cache': async () => {
    await make(CHAT, ask('m', { seed: 1 }))
    const hit = await make(CHAT, ask('m', { seed: 1 }))
    expect(hit.headers['x-gateway-cache']).toBe('hit')
    return hit
  },
  'a repeated answer': async () => {
    const options = { headers: { 'idempotency-key': 'a' } }
    await make(CHAT, ask('m', { seed: 2 }), options)
    const repeated = await make(CHAT, ask('m', { seed: 2 }), options)
    expect(repeated.headers['idempotency-replayed']).toBe('true')
    return repeated
  },
  'a count of tokens': () => make('/v1/messages/count_tokens', ask('m')),
  'a stored response': async () => {
    const { id } = (await make('/v1/responses', { model: 'm', input: 'hi' })).json()
    return get(`/v1/responses/${id}`)
  },
  'a list of models': () => get('/v1/models'),
  'an error of a call': () => make(CHAT, '{'),
  'an error without an endpoint': () => get('/v1/nothing'),
  'an answer of the management API': () => get('/api/status'),
  'a redirect': () => get('/api/usage/token'),
  'a preflight': () =>
    get(CHAT, { method: 'OPTIONS', headers: { ...PAGE, 'access-control-request-method': 'POST' } }),
}

test.each(Object.entries(ANSWERS))(
  'a header that is added by the recipe is in the head of every kind of answer: %s',
  async (_, answerOf) => {
    const { headers } = await answerOf()
    expect(headers['x-served-by']).toBe('sluice')
  },
)

test('pages of other origins may read a header that is added by the recipe', async () => {
  const { headers } = await make(CHAT, ask('m'), { headers: PAGE })
  expect(String(headers['access-control-expose-headers']).split(', ')).toContain('x-served-by')
})
