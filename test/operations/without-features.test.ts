import { afterAll, beforeAll, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, token, user, ROOT } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'

const FEATURES = "import { callFeatures, type FeatureServices } from './features.ts'"
const NO_FEATURES = "import type { FeatureServices } from './features.ts'\nconst callFeatures = () => []"

let copy: PatchedCopy
let fixture: Fixture
beforeAll(async () => {
  copy = await patchedProgram([{ file: 'src/gateway/open-relay.ts', text: FEATURES, by: NO_FEATURES }])
  fixture = await startFixture(
    (upstream) => ({
      models: priced(['m', 'r']),
      channels: [
        channel('m', upstream.baseUrl('m')),
        channel('r', upstream.baseUrl('r'), { protocol: 'responses' }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: 1_000_000 })])],
    }),
    { root: copy.root },
  )
})
afterAll(async () => {
  await fixture?.close()
  copy?.discard()
})

// One unit for a token of the prompt, four for one of the output: 10 + 5 · 4.
test.each([
  ['a whole answer', '/v1/chat/completions', ask('m')],
  ['a stream', '/v1/chat/completions', askStream('m')],
  ['a converted answer', '/v1/messages', { ...ask('m'), max_tokens: 9 }],
  ['a response', '/v1/responses', { model: 'm', input: 'hello' }],
])('a gateway with an empty list of features answers and charges a plain call: %s', async (_, path, body) => {
  fixture.upstream.script(
    'm',
    'stream' in body
      ? { kind: 'stream', usage: usageText(10, 5) }
      : { kind: 'whole', content: 'yes', usage: usageText(10, 5) },
  )

  const answer = await call(fixture.gateway.url, body, { key: 'ann', path })

  expect(answer.status, answer.text).toBe(200)
  const row = databaseOf(fixture.gateway.dataDir).usageOf(String(answer.headers['x-request-id']))
  expect(row).toMatchObject({ input_tokens: 10, output_tokens: 5, quota: 30, reason: 'complete' })
})

test('a gateway with an empty list of features sends the ids of responses to the provider and back as they are', async () => {
  const body = '{"id":"resp_theirs","object":"response","status":"completed","output":[]}'
  fixture.upstream.script('r', { kind: 'whole', body })
  const asked = { model: 'r', input: 'hello', previous_response_id: 'resp_earlier' }

  const answer = await call(fixture.gateway.url, asked, { key: 'ann', path: '/v1/responses' })

  expect(answer.text).toBe(body)
  expect(String(fixture.upstream.received('r').at(-1)?.body)).toContain(
    '"previous_response_id":"resp_earlier"',
  )
})
