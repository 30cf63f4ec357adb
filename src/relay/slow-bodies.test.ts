import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { GatewayError } from '../errors.ts'
import type { Client } from '../limits/shared-pool.ts'
import { Request } from '../server/request.ts'
import { BodyMemory, BodyAllocation } from './body-memory.ts'
import { PendingBody, SlowBodies } from './slow-bodies.ts'

const MIB = 1024 * 1024

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const room = new BodyMemory(
  () => 32 * MIB,
  () => 0,
)
const refused = new Map<PendingBody, GatewayError>()
beforeEach(() => refused.clear())

/** A body of a client that is watched, of which so much has come. */
function begun(slow: SlowBodies, client: Client, bytes: number): PendingBody {
  const request = new Request(
    { method: 'POST', url: '/', version: '1.1', headers: {}, hosts: 1, keepAlive: true },
    { bytesRead: 0, remoteAddress: '', updateReading() {} },
  )
  const holding = new BodyAllocation(client)
  const reading: PendingBody = new PendingBody(request, holding, (error) => {
    refused.set(reading, error)
    unwatch()
    room.give(holding, holding.bytes)
  })
  const unwatch = slow.watch(reading)
  comes(reading, bytes)
  return reading
}

function comes(reading: PendingBody, bytes: number): void {
  if (bytes > 0) expect(room.take(reading.allocation, bytes)).toBe(true)
}

describe('when memory for bodies is short', () => {
  const endAll = (...readings: readonly PendingBody[]): void => {
    for (const { allocation: holding } of readings) room.give(holding, holding.bytes)
    expect(room.held).toBe(0)
  }

  test.each([
    ['first', [1, 0, 2]],
    ['last', [1, 2, 0]],
  ])(
    'the body that made the least progress for what it holds is refused, and no other: the %s',
    (_, order) => {
      const slow = new SlowBodies()
      const bodies = [1, 1, 1].map(() => begun(slow, 1, 8 * MIB))
      const [stalled, fast, dripping] = [0, 1, 2].map((one) => bodies[order.indexOf(one)]) as [
        PendingBody,
        PendingBody,
        PendingBody,
      ]
      for (let second = 0; second < 3; second++) {
        vi.advanceTimersByTime(1_000)
        comes(fast, 4 * MIB)
        comes(dripping, 1_024)
      }
      const asking = begun(slow, 2, 1_000)
      expect(slow.refuseStalled(asking, room)).toBe(true)
      expect([...refused.keys()]).toEqual([stalled])
      expect(refused.get(stalled)?.code).toBe('request_timeout')
      expect(slow.refuseStalled(asking, room)).toBe(true)
      expect([...refused.keys()]).toEqual([stalled, dripping])
      // The fast one is not refused for anybody.
      expect(slow.refuseStalled(asking, room)).toBe(false)
      endAll(fast, asking)
    },
  )

  test('one that has just begun is not taken for one that has stalled', () => {
    const slow = new SlowBodies()
    const young = begun(slow, 1, 8 * MIB)
    vi.advanceTimersByTime(1_000)
    const asking = begun(slow, 2, 1_000)
    expect(slow.refuseStalled(asking, room)).toBe(false)
    endAll(young, asking)
  })

  test('nobody makes room for a body that has stalled more', () => {
    const slow = new SlowBodies()
    const [stalled, worse] = [begun(slow, 1, 8 * MIB), begun(slow, 1, 9 * MIB)]
    vi.advanceTimersByTime(3_000)
    expect(slow.refuseStalled(worse, room)).toBe(false)
    expect(refused.size).toBe(0)
    endAll(stalled, worse)
  })

  test('a client that holds less than the one that asks is left alone', () => {
    const slow = new SlowBodies()
    const small = begun(slow, 1, 1 * MIB)
    vi.advanceTimersByTime(3_000)
    const asking = begun(slow, 2, 2 * MIB)
    expect(slow.refuseStalled(asking, room)).toBe(false)
    room.give(asking.allocation, asking.allocation.bytes)
    const other = begun(slow, 3, 1_000)
    expect(slow.refuseStalled(other, room)).toBe(true)
    expect([...refused.keys()]).toEqual([small])
    endAll(other)
  })
})
