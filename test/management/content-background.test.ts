import { afterAll, beforeAll, expect, test } from 'vitest'
import { backgroundConfiguration, begin, charged, stageOf } from '../fixtures/background-stage.ts'
import { contentOf, rowWithContent, sha256 } from '../fixtures/content.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

const OPERATOR = { id: 1, accessToken: 'root-access-token' }
const CASES = { polled: {} }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    ...backgroundConfiguration(upstream, CASES),
    content_log: { what: 'full', readers: 100 },
  }))
})
afterAll(() => fixture?.close())

test('the stored content of a background response is its request and its first answer, and the row has their digest', async () => {
  const on = stageOf(fixture, CASES, 'polled')
  const { id } = await begin(on)
  on.provider.backgroundStatus = 'completed'
  await on.client.responses.retrieve(id)
  const row = await charged(on)
  const { parts } = await contentOf(fixture.gateway.url, OPERATOR, row.id)
  expect(parts.request_received?.text).toContain('"background":true')
  expect(parts.answer_received?.text).toContain('"status":"in_progress"')
  expect(parts.answer_sent?.text).toContain(id)
  const listed = await rowWithContent(fixture.gateway.url, OPERATOR, `/api/log/${row.id}`)
  expect(listed['content_sha256']).toBe(sha256(...Object.values(parts).map(({ text = '' }) => text)))
})
