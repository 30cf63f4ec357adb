import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RequestMemory, MemoryAllocation, ResponseMemory } from './request-memory.ts'
import { requestMemory, usedUp } from '../../test/samples/request-memory.ts'

const MIB = 1024 * 1024
const SMALL = 256 * 1024
const ALL = 256 * MIB

const room = (bodyLimit = 32 * MIB): RequestMemory =>
  new RequestMemory(
    () => bodyLimit,
    () => 0,
  )

const allocationOf = (client: number, key = 1): MemoryAllocation => new MemoryAllocation({ client, key })

/** Receives a body in chunks; returns false if it was refused on the way and its memory was returned. */
function takeIn(into: RequestMemory, client: number, bytes: number, piece = 65_536): boolean {
  const holding = allocationOf(client)
  while (holding.bytes < bytes) {
    if (into.take(holding, piece)) continue
    into.give(holding, holding.bytes)
    return false
  }
  return true
}

/** Lets forty keys send as many large bodies as they may. */
function crowd(into: RequestMemory): void {
  for (let key = 1; key <= 40; key++) for (let i = 0; i < 8; i++) takeIn(into, key, 32 * MIB)
}

test('a release of at least 4 MiB of request memory at once is reported as garbage that the garbage collector should collect', () => {
  const reported: number[] = []
  const memory = new RequestMemory(
    () => 32 * MIB,
    () => 0,
    (bytes) => reported.push(bytes),
  )
  const one = allocationOf(1)
  memory.take(one, 12 * MIB)
  memory.give(one, 4 * MIB - 1)
  expect(reported).toEqual([])
  memory.give(one, 8 * MIB)
  memory.give(one, 1)
  expect(reported).toEqual([8 * MIB])
})

test("one conversion and one answer may exceed their user's memory share, and a second conversion waits for the first", async () => {
  const memory = room()
  const giveBack = usedUp(memory)
  const [first, second, answer] = [allocationOf(1), allocationOf(1), allocationOf(1)]
  const wait = (one: MemoryAllocation, ms?: number) =>
    memory.takeInTurn(one, MIB, one === answer ? 'answers' : 'conversions', () => {}, ms)
  expect(wait(first)).toBe(true)
  expect(await wait(second, 1)).toBe(false)
  expect(wait(answer)).toBe(true)
  const waiting = wait(second)
  memory.give(first, MIB)
  expect(await waiting).toBe(true)
  for (const one of [second, answer]) memory.give(one, MIB)
  giveBack()
  expect(memory.held).toBe(0)
})

describe('the memory for bodies', () => {
  test('small request bodies have reserved memory when large bodies of other keys fill the shared memory', () => {
    const bodies = room()
    crowd(bodies)
    expect(takeIn(bodies, 99, 32 * MIB)).toBe(false)
    const small = Array.from({ length: 100 }, () => takeIn(bodies, 99, SMALL))
    expect(new Set(small)).toEqual(new Set([true]))
  })

  test('three large request bodies of a key leave memory for a large body of another key, and a fourth is refused', () => {
    const bodies = room()
    const seen = allocationOf(2)
    bodies.take(seen, 1)
    bodies.give(seen, 1)
    const own = Array.from({ length: 8 }, () => takeIn(bodies, 1, 32 * MIB))
    expect(own.filter(Boolean)).toHaveLength(3)
    expect(takeIn(bodies, 2, 32 * MIB)).toBe(true)
  })

  test('a small request body that grows releases its reserved memory once it fits completely into the shared memory', () => {
    const bodies = room()
    const large = Array.from({ length: 6 }, () => allocationOf(1))
    const others = allocationOf(2)
    for (const one of large) while (one.bytes < 32 * MIB && bodies.take(one, 65_536));
    while (bodies.take(others, MIB));
    const growing = allocationOf(2)
    expect(bodies.take(growing, 1_000)).toBe(true)
    expect(growing.reserved).toBe(1_000)
    for (const one of large) bodies.give(one, one.bytes)
    expect(bodies.take(growing, MIB)).toBe(true)
    expect([growing.shared, growing.reserved]).toEqual([MIB + 1_000, 0])
    expect(bodies.held).toBe(others.bytes + MIB + 1_000)
  })

  test('the memory for request bodies grows with the maximum body size that the operator configures', () => {
    expect(takeIn(room(1024 * MIB), 1, 1024 * MIB, MIB)).toBe(true)
  })

  test('the memory for request bodies is counted to the byte, never exceeded, and released completely', () => {
    const step = fc.record({
      body: fc.nat(11),
      act: fc.constantFrom('take', 'take', 'take', 'give', 'release'),
      bytes: fc.integer({ min: 1, max: 20 * MIB }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
        const bodies = room()
        const holdings = Array.from({ length: 12 }, (_, i) => allocationOf(i % 4))
        for (const { body, act, bytes } of steps) {
          const holding = holdings[body] as MemoryAllocation
          const before = holding.bytes
          if (act === 'take') {
            const isTaken = bodies.take(holding, bytes)
            expect(holding.bytes).toBe(before + (isTaken ? bytes : 0))
          } else bodies.give(holding, act === 'give' ? Math.min(bytes, before) : before)
          expect(bodies.held).toBe(holdings.reduce((sum, one) => sum + one.bytes, 0))
          expect(bodies.held).toBeLessThanOrEqual(ALL)
          // Only small bodies hold parts of the reserve.
          for (const one of holdings) if (one.bytes > SMALL) expect(one.reserved).toBe(0)
        }
        for (const holding of holdings) bodies.give(holding, holding.bytes)
        expect([bodies.held, bodies.usedBy(0)]).toEqual([0, 0])
      }),
    )
  })
})

const KIB = 1024
/** Bytes of a response that are not counted. */
const FREE = 64 * KIB

function answers(count: number) {
  const memory = requestMemory()
  const owner = { client: 1, key: 1 }
  return {
    memory,
    all: Array.from({ length: count }, () => new ResponseMemory(memory, owner)) as [ResponseMemory],
  }
}

async function isSettled(waiting: Promise<unknown>): Promise<boolean> {
  let settled = false
  void waiting.then(() => (settled = true))
  await nextTurn()
  return settled
}

describe("the memory of an upstream's response", () => {
  test("only the memory that a response takes above 64 KiB counts against its user's memory share", () => {
    const { memory, all } = answers(1)
    const [answer] = all
    answer.resize(FREE)
    expect(memory.held).toBe(0)
    answer.resize(FREE + MIB)
    expect([memory.usedBy(1), answer.isShort]).toEqual([MIB, false])
    answer.resize(FREE + 10)
    expect(memory.usedBy(1)).toBe(10)
    answer.resize(0)
    expect(memory.held).toBe(0)
  })

  test("the memory of one response at a time may exceed its user's share, so that responses do not wait for each other forever", async () => {
    const { memory, all } = answers(3)
    const giveBack = usedUp(memory)
    for (const answer of all) answer.resize(FREE + MIB)
    expect(all.map(({ isShort }) => isShort)).toEqual([true, true, true])
    const waits = all.map((answer) => answer.whenEnough())
    const settled = (): Promise<boolean[]> => Promise.all(waits.map(isSettled))
    expect(await settled()).toEqual([true, false, false])
    all[0].resize(FREE + 2 * MIB)
    await all[0].whenEnough()
    expect(all[0].isShort).toBe(false)
    all[0].resize(0)
    expect(await settled()).toEqual([true, true, false])
    giveBack()
    expect(await settled()).toEqual([true, true, true])
    for (const answer of all) answer.resize(0)
    expect(memory.held).toBe(0)
  })

  test('a response that no longer buffers anything stops waiting for memory and takes none', async () => {
    const { memory, all } = answers(2)
    const giveBack = usedUp(memory)
    for (const answer of all) answer.resize(FREE + MIB)
    const waits = all.map((answer) => answer.whenEnough())
    for (const answer of all) answer.resize(0)
    await Promise.all(waits)
    giveBack()
    expect(memory.held).toBe(0)
  })

  test('a response that waits for memory in two places stops waiting in both, and waits again if it buffers again', async () => {
    const { memory, all } = answers(2)
    const [first, second] = all as unknown as [ResponseMemory, ResponseMemory]
    const giveBack = usedUp(memory)
    for (const answer of all) answer.resize(FREE + MIB)
    const waits = [first, second, second].map((answer) => answer.whenEnough())
    second.resize(0)
    expect(await Promise.all(waits.map(isSettled))).toEqual([true, true, true])
    second.resize(FREE + MIB)
    const again = second.whenEnough()
    second.resize(0)
    second.resize(FREE + 2 * MIB)
    expect(await isSettled(second.whenEnough())).toBe(false)
    giveBack()
    await again
    expect(second.isShort).toBe(false)
    for (const answer of all) answer.resize(0)
    expect(memory.held).toBe(0)
  })

  test('a response that waited for more memory than it needs in the end releases the rest', async () => {
    const { memory, all } = answers(2)
    const giveBack = usedUp(memory)
    for (const answer of all) answer.resize(FREE + MIB)
    const waits = all.map((answer) => answer.whenEnough())
    all.at(-1)?.resize(FREE + 10)
    giveBack()
    await Promise.all(waits)
    expect(memory.held).toBe(MIB + 10)
  })
})
