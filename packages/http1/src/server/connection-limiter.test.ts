import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { CountedConnection } from './address-blocks.ts'
import { ConnectionLimiter, type ConnectionPeer } from './connection-limiter.ts'
import { lawRuns } from '../../../../test/runner/tier.ts'

/** Shares under test, with the names of the connections that were closed to make room, in order. */
function sharesOf(total: number, perBlock: number, reserve: number) {
  const shares = new ConnectionLimiter({ total, perBlock, reserve })
  const closed: string[] = []
  const openNew = (name: string, peer: Partial<ConnectionPeer> = {}): CountedConnection | undefined =>
    shares.admit({ block: name.slice(0, 1), isProxy: false, isLoopback: false, ...peer }, () =>
      closed.push(name),
    )
  const open: typeof openNew = (name, peer) => {
    const counted = openNew(name, peer)
    counted?.markRead()
    return counted
  }
  return { shares, closed, open, openNew }
}

test('the connection limiter accepts a connection without closing another while there is room for it', () => {
  const { open, shares } = sharesOf(6, 2, 1)
  const a = { block: 'a', isProxy: false, isLoopback: true }
  const proxy = { ...a, isProxy: true }
  for (const name of ['a1', 'a2']) {
    expect(shares.hasRoom(a)).toBe(true)
    open(name)
  }
  expect([shares.hasRoom(a), shares.hasRoom({ ...a, block: 'b' }), shares.hasRoom(proxy)]).toEqual([
    false,
    true,
    true,
  ])
  for (const name of ['p1', 'p2', 'p3']) open(name, { block: 'a', isProxy: true })
  expect([shares.hasRoom({ ...a, block: 'b' }), shares.hasRoom(proxy)]).toEqual([false, false])
})

describe('an address block at its limit', () => {
  test("an address block at its limit has its own oldest idle connection closed for a new one, and not another block's", () => {
    const { open, closed, shares } = sharesOf(100, 2, 0)
    for (const name of ['b1', 'a1', 'a2', 'a3', 'a4']) expect(open(name)).toBeDefined()
    expect(closed).toEqual(['a1', 'a2'])
    expect(shares.open).toBe(3)
  })

  test('an address block at its limit gets no more connections while all are new, or busy before they were read', () => {
    const { open, openNew, closed } = sharesOf(100, 2, 0)
    const [first, second] = [openNew('a1'), openNew('a2')]
    expect(open('a3')).toBeUndefined()
    first?.markBusy()
    first?.markRead()
    expect(open('a3')).toBeUndefined()
    second?.markRead()
    expect(open('a3')).toBeDefined()
    expect(closed).toEqual(['a2'])
  })

  test('an address block at its limit gets no more connections where all have requests in flight', () => {
    const { open, closed, shares } = sharesOf(100, 2, 0)
    open('a1')?.markBusy()
    const second = open('a2')
    second?.markBusy()
    expect(open('a3')).toBeUndefined()
    expect(open('b1')).toBeDefined()
    expect([closed, shares.refused]).toEqual([[], 1])
    second?.release()
    expect(open('a3')).toBeDefined()
  })

  test('the limit of an address block includes requests of its clients behind proxies, each until it ends', () => {
    const { open, shares } = sharesOf(100, 2, 0)
    const proxy = { block: 'p', isProxy: true }
    for (const name of ['p1', 'p2', 'p3', 'p4']) expect(open(name, proxy)).toBeDefined()
    expect([shares.beginRequest('a'), shares.beginRequest('a'), shares.beginRequest('a')]).toEqual([
      true,
      true,
      false,
    ])
    expect(open('a1')).toBeUndefined()
    expect(shares.beginRequest('b')).toBe(true)
    shares.endRequest('a')
    expect(shares.beginRequest('a')).toBe(true)
  })
})

describe('near the maximum number of connections', () => {
  test('near the maximum number of connections, the oldest idle one of the address block with most is closed for a new one', () => {
    const { open, closed } = sharesOf(6, 5, 0)
    const first = open('b1')
    for (const name of ['a1', 'a2', 'a3', 'b2', 'c1']) open(name)
    open('d1')
    open('d2')
    expect(closed).toEqual(['a1', 'b1'])
    // The order is by idle time, not by the connection's age.
    first?.markIdle()
  })

  test('near the maximum number of connections, the one that was idle for longest is closed first, whichever connected first', () => {
    const { open, closed } = sharesOf(3, 3, 0)
    const seats = ['a1', 'a2', 'a3'].map((name) => open(name))
    seats[0]?.markBusy()
    seats[0]?.markIdle()
    open('b1')
    open('b2')
    expect(closed).toEqual(['a2', 'a3'])
  })

  test('at the maximum number of connections, those with requests in flight stay open, and a new connection is refused', () => {
    const { open, closed, shares } = sharesOf(3, 3, 0)
    for (const name of ['a1', 'a2', 'b1']) open(name)?.markBusy()
    expect(open('c1')).toBeUndefined()
    expect([closed, shares.open]).toEqual([[], 3])
  })

  test("reserved connections are for clients on the gateway's own machine, but not for a proxy on it", () => {
    const { open, shares } = sharesOf(4, 4, 2)
    for (const name of ['a1', 'b1']) open(name)?.markBusy()
    expect(open('c1')).toBeUndefined()
    expect(open('p1', { isProxy: true, isLoopback: true })).toBeUndefined()
    expect(open('l1', { isLoopback: true })).toBeDefined()
    expect(shares.open).toBe(3)
  })

  test("idle connections never take the places reserved for clients on the gateway's own machine", () => {
    const { open, shares } = sharesOf(10, 10, 2)
    for (let i = 0; i < 20; i++) open(`a${i}`)
    expect(shares.open).toBe(8)
  })

  test('idle connections of a proxy are closed for a new connection only after those of other clients', () => {
    const { open, closed } = sharesOf(5, 5, 0)
    for (const name of ['p1', 'p2', 'p3', 'p4']) open(name, { isProxy: true })
    open('a1')
    open('b1')
    open('c1')?.markBusy()
    open('d1')
    expect(closed).toEqual(['a1', 'b1', 'p1'])
  })
})

test('in any sequence of events the connection limiter keeps its limits, closes no busy connection, and leaks no entries', () => {
  const step = fc.record({
    what: fc.constantFrom('open', 'work', 'rest', 'leave', 'begin', 'end'),
    block: fc.constantFrom('a', 'b', 'c', 'd'),
    isProxy: fc.boolean(),
    isLoopback: fc.boolean(),
    which: fc.nat(30),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const shares = new ConnectionLimiter({ total: 12, perBlock: 4, reserve: 3 })
      const seats: { seat: CountedConnection; key: string; isBusy: boolean }[] = []
      const requests: string[] = []
      for (const { what, which, ...peer } of steps) {
        const at = which % Math.max(1, seats.length)
        const chosen = seats[at]
        if (what === 'open') {
          const isFull = shares.open >= 12
          const seat = shares.admit(peer, () => {
            const closed = seats.findIndex((each) => each.seat === held.seat)
            expect(seats[closed]?.isBusy).toBe(false)
            seats.splice(closed, 1)
          })
          seat?.markRead()
          const held = { seat: seat as CountedConnection, key: `${peer.isProxy}${peer.block}`, isBusy: false }
          if (seat) seats.push(held)
          else if (!isFull && seats.some(({ isBusy }) => !isBusy) && peer.isProxy)
            throw new Error('refused though there was an idle one')
        } else if (what === 'work' && chosen) {
          chosen.seat.markBusy()
          chosen.isBusy = true
        } else if (what === 'rest' && chosen) {
          chosen.seat.markIdle()
          chosen.isBusy = false
        } else if (what === 'leave' && chosen) {
          chosen.seat.release()
          chosen.seat.release()
          seats.splice(at, 1)
        } else if (what === 'begin' && shares.beginRequest(peer.block)) requests.push(peer.block)
        else if (what === 'end' && requests.length > 0) shares.endRequest(requests.pop() as string)
        expect(shares.open).toBe(seats.length)
        expect(shares.open).toBeLessThanOrEqual(12)
        for (const block of ['a', 'b', 'c', 'd']) {
          const direct = seats.filter(({ key }) => key === `false${block}`).length
          expect(direct + requests.filter((each) => each === block).length).toBeLessThanOrEqual(4)
        }
      }
      for (const { seat } of seats) seat.release()
      expect(shares.open).toBe(0)
    }),
    { numRuns: lawRuns(500) },
  )
})
