import { Response } from '@sluice/http1'
import { expect, test } from 'vitest'
import { requestMemory } from '../../../test/samples/request-memory.ts'
import { keptStore } from '../../../test/stores/kept.ts'
import { openedStore } from '../../../test/stores/rows.ts'
import { DISCARDING_CONNECTION, NO_TRAITS } from '../../call/answers/answer-recorder.ts'
import type { ReadRequest } from '../../call/answer-request.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import type { Settings } from '../../domain/settings.ts'
import { StoreReads } from '../../limits/store-reads.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { IdempotentCalls } from './idempotent-calls.ts'
import { KeptAnswers } from './kept-answers.ts'

const SETTINGS = { options: { idempotency: { keep: 60_000, most_answer: 1_000_000 } } } as unknown as Settings
const CALLER = { user: { id: 1 }, token: { id: 1 } } as unknown as ReadRequest['caller']

/** Calls with idempotency keys of one user. */
async function stage() {
  const rows = await openedStore()
  const counted: string[] = []
  const metrics = { add: (_: string, __: number, result: string) => counted.push(result) }
  const memory = requestMemory()
  const calls = new IdempotentCalls({
    claims: { rows, node: 'n', tag: (_, text) => text },
    answers: new KeptAnswers({ rows, kept: keptStore(rows) }),
    memory,
    reads: new StoreReads(memory),
    metrics: metrics as unknown as Metrics,
  })
  /** Makes an attempt, whose call is answered to its end after `answered`. `breaks`: its connection does, at the first byte. */
  const attempt = (key: string, answered: Promise<void> = Promise.resolve(), breaks = false) => {
    const send = (): true => {
      if (breaks) response.onConnectionEnd('aborted')
      return true
    }
    const response: Response = new Response({ ...DISCARDING_CONNECTION, send, sendParts: send }, NO_TRAITS)
    const made = Promise.withResolvers<void>()
    const incoming = {
      id: key,
      request: { headers: { 'idempotency-key': key }, url: '/v1/chat/completions' },
      response,
      record: {},
    } as unknown as IncomingCall
    const request = { body: { bytes: Buffer.from('{}') }, incoming, caller: CALLER, settings: SETTINGS }
    const over = calls.of(incoming, SETTINGS)?.(request, async (recorded) => {
      recorded.response.writeHead(200, {}).write(Buffer.from('an'))
      made.resolve()
      await answered
      recorded.response.end('swer')
    })
    return { response, made: made.promise, over, leave: () => response.onConnectionEnd('aborted') }
  }
  return { calls, counted, attempt }
}

test('a call that goes on without clients counts once, and no more when it is over, whoever came and left meanwhile', async () => {
  const { calls, counted, attempt } = await stage()
  const answered = Promise.withResolvers<void>()
  const first = attempt('k', answered.promise)
  await first.made
  first.leave()
  expect(calls.left).toBe(1)
  // Its client leaves before it can be given the answer.
  const gone = attempt('k')
  gone.leave()
  await gone.over
  expect([calls.left, counted.filter((result) => result === 'attached')]).toEqual([1, []])
  // This one gets the answer as it arrives, and leaves too.
  const later = attempt('k')
  await expect.poll(() => calls.left).toBe(0)
  later.leave()
  expect(calls.left).toBe(1)
  const broken = attempt('k', answered.promise, true)
  await broken.over
  expect(calls.left).toBe(1)
  answered.resolve()
  await Promise.all([first.over, later.over])
  expect(calls.left).toBe(0)
  calls.close()
})
