import { Request } from '@sluice/http1'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { GatewayError } from '../errors.ts'
import type { PoolClient } from '../limits/fair-pool.ts'
import { RequestMemory, MemoryAllocation } from '../limits/request-memory.ts'
import { PendingBody, SlowBodies } from './slow-bodies.ts'

const MIB = 1024 * 1024

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const memory = new RequestMemory(
  () => 32 * MIB,
  () => 0,
)
const refused = new Map<PendingBody, GatewayError>()
beforeEach(() => refused.clear())

/** A request whose body has not arrived. */
function arriving(): Request {
  return new Request(
    { method: 'POST', url: '/', version: '1.1', headers: {}, hosts: 1, keepAlive: true },
    { bytesRead: 0, remoteAddress: '', updateReading() {} },
  )
}

/** Begins a watched body of a client, of which `bytes` have arrived. */
function begin(slow: SlowBodies, client: PoolClient, bytes: number): PendingBody {
  const request = arriving()
  const allocation = new MemoryAllocation({ client, key: '' })
  const body: PendingBody = new PendingBody(request, allocation, (error) => {
    refused.set(body, error)
    unwatch()
    memory.give(allocation, allocation.bytes)
  })
  const unwatch = slow.watch(body)
  receive(body, bytes)
  return body
}

function receive(body: PendingBody, bytes: number): void {
  if (bytes > 0) expect(memory.take(body.allocation, bytes)).toBe(true)
}

test('the time for which the gateway pauses reading does not count against a request body', () => {
  const slow = new SlowBodies()
  const request = arriving()
  request.read({ onChunk() {}, onEnd() {}, onAbort() {} })
  request.pause()
  const body: PendingBody = new PendingBody(
    request,
    new MemoryAllocation({ client: 1, key: '' }),
    (error) => void refused.set(body, error),
  )
  const unwatch = slow.watch(body)
  vi.advanceTimersByTime(60_000)
  request.resume()
  vi.advanceTimersByTime(10_000)
  expect(refused.size).toBe(0)
  vi.advanceTimersByTime(1_000)
  expect(refused.get(body)?.code).toBe('request_timeout')
  unwatch()
})

describe('when memory for bodies is short', () => {
  const endAll = (...bodies: readonly PendingBody[]): void => {
    for (const { allocation } of bodies) memory.give(allocation, allocation.bytes)
    expect(memory.held).toBe(0)
  }

  test.each([
    ['first', [1, 0, 2]],
    ['last', [1, 2, 0]],
  ])(
    'of several request bodies, only the one with the least progress for its memory is refused: the %s',
    (_, order) => {
      const slow = new SlowBodies()
      const bodies = [1, 1, 1].map(() => begin(slow, 1, 8 * MIB))
      const [stalled, fast, dripping] = [0, 1, 2].map((one) => bodies[order.indexOf(one)]) as [
        PendingBody,
        PendingBody,
        PendingBody,
      ]
      for (let second = 0; second < 3; second++) {
        vi.advanceTimersByTime(1_000)
        receive(fast, 4 * MIB)
        receive(dripping, 1_024)
      }
      const requester = begin(slow, 2, 1_000)
      expect(slow.refuseStalled(requester, memory)).toBe(true)
      expect([...refused.keys()]).toEqual([stalled])
      expect(refused.get(stalled)?.code).toBe('request_timeout')
      expect(slow.refuseStalled(requester, memory)).toBe(true)
      expect([...refused.keys()]).toEqual([stalled, dripping])
      // The fast body is never refused.
      expect(slow.refuseStalled(requester, memory)).toBe(false)
      endAll(fast, requester)
    },
  )

  test('a request body that began a second ago does not count as stalled', () => {
    const slow = new SlowBodies()
    const young = begin(slow, 1, 8 * MIB)
    vi.advanceTimersByTime(1_000)
    const requester = begin(slow, 2, 1_000)
    expect(slow.refuseStalled(requester, memory)).toBe(false)
    endAll(young, requester)
  })

  test('a stalled request body is not refused in favour of another stalled one that holds more memory', () => {
    const slow = new SlowBodies()
    const [stalled, worse] = [begin(slow, 1, 8 * MIB), begin(slow, 1, 9 * MIB)]
    vi.advanceTimersByTime(3_000)
    expect(slow.refuseStalled(worse, memory)).toBe(false)
    expect(refused.size).toBe(0)
    endAll(stalled, worse)
  })

  test('a stalled request body is not refused in favour of a client that holds more memory than the client of that body', () => {
    const slow = new SlowBodies()
    const small = begin(slow, 1, 1 * MIB)
    vi.advanceTimersByTime(3_000)
    const requester = begin(slow, 2, 2 * MIB)
    expect(slow.refuseStalled(requester, memory)).toBe(false)
    memory.give(requester.allocation, requester.allocation.bytes)
    const other = begin(slow, 3, 1_000)
    expect(slow.refuseStalled(other, memory)).toBe(true)
    expect([...refused.keys()]).toEqual([small])
    endAll(other)
  })
})
