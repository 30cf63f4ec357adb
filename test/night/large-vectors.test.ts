import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { databaseOf } from '../fixtures/database.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { answered } from '../fixtures/media-fixture.ts'
import { mostTurnCpuMs } from '../fixtures/turn-cpu.ts'
import { startMeasuredFixture, vectorsResponse } from '../fixtures/vector-responses.ts'

const MIB = 1024 * 1024
const AT_ONCE = 4
const MOST_TURN_MS = 50
/** Numbers whose shortest texts are the same in 32 bits and in 64. */
const NUMBERS = Array.from({ length: 3072 }, (_, index) => ((index % 97) - 48) / 64)
const LIST = JSON.stringify(NUMBERS)
const BASE64 = `"${Buffer.from(new Float32Array(NUMBERS).buffer).toString('base64')}"`

/**
 * The text of each vector from the upstream, the form that the client requests, and the text that it gets.
 */
const CASES = [
  ['lists of numbers unchanged', LIST, 'float', LIST],
  ['lists of numbers as base64', LIST, 'base64', BASE64],
  ['base64 as lists of numbers', BASE64, 'float', LIST],
] as const

let fixture: Fixture
beforeAll(async () => {
  fixture = await startMeasuredFixture()
})
afterAll(() => fixture?.close())

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

test.each(CASES)(
  'four simultaneous embeddings responses of 66 MiB never block the event loop for more than 50 ms: %s',
  async (...of) => {
    const [, sent, form, wanted] = of
    const vectors = Math.ceil((66 * MIB) / sent.length)
    fixture.upstream.script('m', answered('application/json', vectorsResponse(vectors, sent)))
    const expected = createHash('sha256').update(vectorsResponse(vectors, wanted)).digest('hex')
    const database = databaseOf(fixture.gateway.dataDir)
    const turnMs = await mostTurnCpuMs(fixture.gateway, async () => {
      const calls = await Promise.all(Array.from({ length: AT_ONCE }, () => digestOfCall(form)))
      for (const [digest, id] of calls) {
        expect(digest).toBe(expected)
        expect(database.usageOf(id)).toMatchObject({ reason: 'complete', quota: 9 })
      }
    })
    console.info(`${of[0]}: ${turnMs.toFixed(1)} ms of CPU in a turn at most`)
    expect(turnMs).toBeLessThan(MOST_TURN_MS)
  },
)
