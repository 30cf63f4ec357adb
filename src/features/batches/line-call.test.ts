import { expect, onTestFinished, test, vi } from 'vitest'
import { accountOf, factsOf, settlementOf } from '../../../test/ledger/calls.ts'
import { requestMemory, usedUp } from '../../../test/samples/request-memory.ts'
import { storeWithAccount } from '../../../test/stores/rows.ts'
import type { Caller } from '../../accounts/authentication/caller.ts'
import { factsOfBatchHold, LineReserve } from '../../accounts/ledger/batch-hold.ts'
import { Ledger } from '../../accounts/ledger/ledger.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import { asGatewayError, GatewayError } from '../../errors.ts'
import type { RequestMemory } from '../../limits/request-memory.ts'
import { type Batch, newBatchId } from './batch.ts'
import { answerOf, type LineAnswer } from './line-call.ts'

/** Ends a line with a call that cost 30 and sent an answer, of which as much is kept as there is memory for. */
function lineWith(memory: RequestMemory, answer: Buffer): Promise<LineAnswer> {
  return lineOf(memory, async (reserve, response) => {
    await reserve.holdFor(50, factsOf('line')).settle(settlementOf(30))
    response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
  })
}

/** Ends a line with this call. `refusal`: the headers of the answer if the call is refused. */
async function lineOf(
  memory: RequestMemory,
  call: (reserve: LineReserve, response: IncomingCall['response']) => Promise<void>,
  refusal: Readonly<Record<string, string>> = {},
): Promise<LineAnswer> {
  const { store, tokenId } = await storeWithAccount()
  const ledger = new Ledger(store, 'run')
  const account = await accountOf(ledger, tokenId)
  const { id } = newBatchId('openai')
  const reserve = new LineReserve(ledger.admit(account, 1_000, factsOfBatchHold(id, 1)), 100)
  const batch = { id, createdMs: 1, facts: { path: '/v1/chat/completions', headers: {} } } as unknown as Batch
  const caller = { user: { id: 1 }, token: { id: 1 } } as unknown as Caller
  const renderError = (_: unknown, error: unknown) => ({
    status: asGatewayError(error)?.kind.status ?? 500,
    headers: refusal,
    body: Buffer.from('{}'),
  })
  const holdFor = (amount: number) => reserve.holdFor(amount, factsOf('line'))
  const line = { number: 1, customId: 'a', amount: 100, body: Buffer.from('{}') }
  const given = { batch, caller, line, reserve, holdFor, startedMs: 1, startedAt: 1 }
  return answerOf({ memory, renderError }, given, ({ response }) => call(reserve, response))
}

test('an answer that is kept is charged', async () => {
  const { status, row, retryMs } = await lineWith(requestMemory(), Buffer.from('{"a":1}'))
  expect([status, row?.quota, retryMs]).toEqual([200, 30, undefined])
})

test('an answer for which there is no memory costs nothing, and is asked for again', async () => {
  const memory = requestMemory()
  usedUp(memory)
  const { status, row, retryMs, isShortOfMemory } = await lineWith(memory, Buffer.from('{"a":1}'))
  expect([status, row?.quota, retryMs, isShortOfMemory]).toEqual([503, 0, 0, true])
})

test('a call that fails costs nothing, and is not made again if its provider has billed it', async () => {
  const { status, row, retryMs } = await lineOf(requestMemory(), async (reserve) => {
    await reserve.holdFor(50, factsOf('line')).settle(settlementOf(30))
    throw new GatewayError('upstream_error', 'the answer is an error')
  })
  expect([status, row?.quota, row?.batch_saved, retryMs]).toEqual([500, 0, 0, undefined])
})

test('an answer of more than 64 MiB costs nothing, and is not asked for again', async () => {
  const large = Buffer.alloc(64 * 1_048_576 + 1, ' ')
  const { status, row, retryMs } = await lineWith(requestMemory(), large)
  expect([status, row?.quota, retryMs]).toEqual([500, 0, undefined])
})

test.each([
  ['7', 7_000],
  ['Mon, 30 Nov 2026 10:00:30 GMT', 30_000],
])('a line that is refused until %s is made again then', async (retryAfter, wanted) => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-11-30T10:00:00Z') })
  onTestFinished(() => void vi.useRealTimers())
  const refused = () => Promise.reject(new GatewayError('rate_limited', 'the limit is reached'))
  const { status, row, retryMs } = await lineOf(requestMemory(), refused, { 'retry-after': retryAfter })
  expect([status, row, retryMs]).toEqual([429, undefined, wanted])
})
