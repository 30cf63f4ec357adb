import { afterAll, beforeAll, expect, test } from 'vitest'
import { open } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { storingUpstream } from '../fixtures/stored-responses.ts'

/** More than the gateway buffers of a response that it passes on. */
const TEXT = 'x'.repeat(6 * 1024 * 1024)

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'), { protocol: 'responses' })],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

/** The gateway's and the upstream's ids of a response and of the one that it continues. */
async function continued() {
  const provider = storingUpstream('m')
  fixture.upstream.decide('m', (request) => provider.decision(request))
  const create = async (fields: object): Promise<string> => {
    const { text } = await fixture.chat(
      'ann',
      { model: 'm', input: 'hi', ...fields },
      { path: '/v1/responses' },
    )
    return String(JSON.parse(text).id)
  }
  const previous = await create({})
  const id = await create({ previous_response_id: previous })
  const [upstreamPrevious = '', upstreamId = ''] = provider.made.map((one) => one.id)
  return { ours: { id, previous }, theirs: { id: upstreamId, previous: upstreamPrevious } }
}

const beginningOf = ({ id }: { readonly id: string }): string =>
  `{"id":"${id}","object":"response","output":[{"type":"message","content":[{"type":"output_text","text":"${TEXT}`
const endOf = ({ id, previous }: { readonly id: string; readonly previous: string }): string =>
  `"}]}],"status":"completed","previous_response_id":"${previous}","conversation":"${id}"}`

test('a large native response reaches its client as it comes, under the ids of the gateway', async () => {
  const { ours, theirs } = await continued()
  const seen = Promise.withResolvers<void>()
  fixture.upstream.script('m', {
    kind: 'stream',
    headers: { 'content-type': 'application/json' },
    frames: [beginningOf(theirs)],
    rest: { after: seen.promise, frames: [endOf(theirs)] },
    ending: 'no done',
  })
  const answer = await open(fixture.gateway.url, undefined, {
    method: 'GET',
    path: `/v1/responses/${ours.id}`,
    key: 'ann',
  })
  expect(answer.status).toBe(200)
  await answer.until(TEXT.slice(0, 5 * 1024 * 1024))
  seen.resolve()
  const { text, broken } = await answer.end()
  expect(broken).toBe(false)
  expect(text === beginningOf(ours) + endOf(ours)).toBe(true)
})

test('a large native response that its upstream breaks off is visibly incomplete for the client', async () => {
  const { ours, theirs } = await continued()
  fixture.upstream.script('m', {
    kind: 'stream',
    headers: { 'content-type': 'application/json' },
    frames: [beginningOf(theirs)],
    ending: 'reset',
  })
  const path = `/v1/responses/${ours.id}`
  const answer = await open(fixture.gateway.url, undefined, { method: 'GET', path, key: 'ann' }).catch(
    () => 'cut',
  )
  expect(typeof answer === 'string' || answer.status !== 200 || (await answer.end()).broken).toBe(true)
})

test("a large native response has the gateway's id of the response that it continues, even if that response was deleted", async () => {
  const { ours, theirs } = await continued()
  await fixture.chat('ann', undefined, { path: `/v1/responses/${ours.previous}`, method: 'DELETE' })
  fixture.upstream.script('m', { kind: 'whole', body: beginningOf(theirs) + endOf(theirs) })
  const { text } = await fixture.chat('ann', undefined, { path: `/v1/responses/${ours.id}`, method: 'GET' })
  expect(text === beginningOf(ours) + endOf(ours)).toBe(true)
})
