import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../equipment/configuration.ts'
import { databaseOf } from '../equipment/database.ts'
import { type Fixture, startFixture } from '../equipment/fixture.ts'
import { answered } from '../equipment/media-fixture.ts'
import { metricsOf } from '../operations/metrics-text.ts'

const MIB = 1024 * 1024
const AT_ONCE = 4
const MOST_LATE_MS = 50
/** Sampling interval of the gateway's own measurement, which each of its samples includes. */
const SAMPLE_MS = 20
/** Runs of which one has to hold: a machine's other work delays the gateway too, but not in each of them. */
const MOST_RUNS = 5
/** Numbers whose texts are the shortest ones in 32 bits and in 64. */
const NUMBERS = Array.from({ length: 3072 }, (_, index) => ((index % 97) - 48) / 64)
const LIST = JSON.stringify(NUMBERS)
const BASE64 = `"${Buffer.from(new Float32Array(NUMBERS).buffer).toString('base64')}"`

/** Text of each vector from the upstream, the form that the client asks for, and the text that it gets. */
const CASES = [
  ['lists of numbers unchanged', LIST, 'float', LIST],
  ['lists of numbers as base64', LIST, 'base64', BASE64],
  ['base64 as lists of numbers', BASE64, 'float', LIST],
] as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: { m: { price: PLAIN_PRICE } },
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

const response = (vectors: number, embedding: string): Buffer => {
  const data = Array.from({ length: vectors }, (_, index) => `{"index":${index},"embedding":${embedding}}`)
  return Buffer.from(
    `{"object":"list","data":[${data.join(',')}],"usage":{"prompt_tokens":9,"total_tokens":9}}`,
  )
}

/** The digest of a response, and its request's id. */
function digestOfCall(form: string): Promise<readonly [digest: string, id: string]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly [string, string]>()
  const sent = request(`${fixture.gateway.url}/v1/embeddings`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-ann', 'content-type': 'application/json' },
  })
  sent.on('error', reject).on('response', (came) => {
    const hash = createHash('sha256')
    came.on('data', (chunk: Buffer) => hash.update(chunk)).on('error', reject)
    came.on('end', () => resolve([hash.digest('hex'), String(came.headers['x-request-id'])]))
  })
  sent.end(JSON.stringify({ model: 'm', input: 'one two three', encoding_format: form }))
  return promise
}

/** Milliseconds that the gateway's event loop was late at most while the work was done. */
async function mostLateDuring(work: () => Promise<void>): Promise<number> {
  const { url } = fixture.gateway
  // Reading the metrics begins a new interval.
  await metricsOf(url)
  await work()
  const page = await metricsOf(url)
  return Math.max(0, page.sum('sluice_event_loop_delay_max_seconds') * 1000 - SAMPLE_MS)
}

test.each(CASES)('four responses of 66 MiB at once hold up no turn for 50 ms: %s', async (...of) => {
  const [, sent, form, wanted] = of
  const vectors = Math.ceil((66 * MIB) / sent.length)
  fixture.upstream.script('m', answered('application/json', response(vectors, sent)))
  const expected = createHash('sha256').update(response(vectors, wanted)).digest('hex')
  const database = databaseOf(fixture.gateway.dataDir)
  const late: number[] = []
  while (late.length < MOST_RUNS && Math.min(...late) >= MOST_LATE_MS)
    late.push(
      await mostLateDuring(async () => {
        const calls = await Promise.all(Array.from({ length: AT_ONCE }, () => digestOfCall(form)))
        for (const [digest, id] of calls) {
          expect(digest).toBe(expected)
          expect(database.usageOf(id)).toMatchObject({ reason: 'complete', quota: 9 })
        }
      }),
    )
  console.info(`${of[0]}: late by ${late.map((ms) => ms.toFixed(1)).join(', ')} ms`)
  expect(Math.min(...late)).toBeLessThan(MOST_LATE_MS)
})
