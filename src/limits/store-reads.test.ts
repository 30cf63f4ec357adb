import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { MemoryAllocation, RequestMemory } from './request-memory.ts'
import { type StoreRead, StoreReads } from './store-reads.ts'

const MIB = 1024 * 1024
/** Share of a client while no other has called recently: 7/8 of 192 MiB. */
const SHARE = 168 * MIB
const TOO_MANY = { code: 'too_many_reads', retryAfter: 1 }

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function started() {
  const memory = new RequestMemory(
    () => 32 * MIB,
    () => performance.now(),
  )
  const reads = new StoreReads(memory)
  return { memory, reads }
}

/** Whether a promise has settled: `yes`, `no`, or the code with which it was rejected. */
async function settled(promise: Promise<unknown>): Promise<string> {
  let state = 'no'
  promise.then(
    () => (state = 'yes'),
    (error: { code: string }) => (state = error.code),
  )
  await vi.advanceTimersByTimeAsync(0)
  return state
}

describe('reads of a user', () => {
  const begun = (reads: StoreReads, userId: number, count: number): StoreRead[] =>
    Array.from({ length: count }, () => {
      const read = reads.of(userId)
      read.begin().catch(() => {})
      return read
    })

  test('eight database reads of a user run at once; further ones begin in order of arrival when one ends', async () => {
    const { reads } = started()
    const [first, ...others] = begun(reads, 1, 8)
    const ninth = reads.of(1)
    const tenth = reads.of(1)
    const [nine, ten] = [ninth.begin(), tenth.begin()]
    expect([await settled(nine), await settled(ten)]).toEqual(['no', 'no'])
    expect(await settled(reads.of(2).begin())).toBe('yes')
    first?.end()
    expect([await settled(nine), await settled(ten)]).toEqual(['yes', 'no'])
    others[0]?.end()
    expect(await settled(ten)).toBe('yes')
  })

  test('a request that waits for something else gives its turn and its memory to others, and gets a turn anew', async () => {
    const { memory, reads } = started()
    const [first, second] = begun(reads, 1, 8) as [StoreRead, StoreRead]
    await first.hold(MIB)
    const ninth = reads.of(1).begin()
    expect(await settled(ninth)).toBe('no')
    first.pause()
    expect(await settled(ninth)).toBe('yes')
    expect(memory.held).toBe(0)
    const again = first.begin()
    expect(await settled(again)).toBe('no')
    second.end()
    expect(await settled(again)).toBe('yes')
  })

  test('a turn to read that was given back is not given back again at the end of its request', async () => {
    const { reads } = started()
    const [first] = begun(reads, 1, 8)
    first?.pause()
    begun(reads, 1, 1)
    const tenth = reads.of(1).begin()
    first?.end()
    expect(await settled(tenth)).toBe('no')
  })

  test('a request that waits for its turn to read keeps its place, even if another part of it waits for something else', async () => {
    const { reads } = started()
    const [first] = begun(reads, 1, 8)
    const ninth = reads.of(1)
    const waiting = ninth.begin()
    ninth.pause()
    expect(await settled(waiting)).toBe('no')
    first?.end()
    expect(await settled(waiting)).toBe('yes')
  })

  test('at most 256 database reads of a user wait, for up to ten seconds; more are refused at once', async () => {
    const { reads } = started()
    begun(reads, 1, 8)
    const waiting = Array.from({ length: 256 }, () => reads.of(1).begin())
    const refused = Promise.all(waiting.map((one) => expect(one).rejects.toMatchObject(TOO_MANY)))
    await expect(reads.of(1).begin()).rejects.toMatchObject(TOO_MANY)
    await vi.advanceTimersByTimeAsync(9_999)
    expect(await settled(waiting[255] as Promise<void>)).toBe('no')
    await vi.advanceTimersByTimeAsync(1)
    await refused
    expect(await settled(reads.of(1).begin())).toBe('no')
  })

  test('database reads release their slots and their positions in the queue when their client leaves', async () => {
    const { reads } = started()
    const running = begun(reads, 1, 8)
    const waiting = begun(reads, 1, 256)
    for (const read of waiting) read.end()
    const next = reads.of(1).begin()
    for (const read of running) read.end()
    expect(await settled(next)).toBe('yes')
    await vi.advanceTimersByTimeAsync(0)
    begun(reads, 1, 7)
    expect(await settled(reads.of(1).begin())).toBe('no')
  })
})

describe('the memory of a read', () => {
  test('a database read waits for memory, takes it from the share of its client, and releases it at its end', async () => {
    const { memory, reads } = started()
    const first = reads.of(1)
    await first.hold(SHARE)
    const second = reads.of(1)
    const holding = second.hold(MIB)
    expect(await settled(holding)).toBe('no')
    first.end()
    expect(await settled(holding)).toBe('yes')
    expect(memory.held).toBe(MIB)
    second.end()
    expect(memory.held).toBe(0)
  })

  test('a database read is refused if its memory is not free within a total wait of ten seconds', async () => {
    const { memory, reads } = started()
    const body = new MemoryAllocation({ client: 1, key: '' })
    expect(memory.take(body, SHARE)).toBe(true)
    const read = reads.of(1)
    const first = read.hold(MIB)
    await vi.advanceTimersByTimeAsync(6_000)
    memory.give(body, MIB)
    await first
    const second = read.hold(MIB)
    await vi.advanceTimersByTimeAsync(3_999)
    expect(await settled(second)).toBe('no')
    await vi.advanceTimersByTimeAsync(1)
    await expect(second).rejects.toMatchObject(TOO_MANY)
  })

  test('a database read that waits for its memory for a shorter time may go on without', async () => {
    const { memory, reads } = started()
    const body = new MemoryAllocation({ client: 1, key: '' })
    expect(memory.take(body, SHARE)).toBe(true)
    const read = reads.of(1)
    const first = expect(read.hold(MIB, undefined, 1_000)).rejects.toMatchObject(TOO_MANY)
    await vi.advanceTimersByTimeAsync(1_000)
    await first
    const second = read.hold(MIB)
    memory.give(body, MIB)
    expect(await settled(second)).toBe('yes')
  })

  test('one read of a content at a time may exceed the share of its client, until it gives the memory back', async () => {
    const { memory, reads } = started()
    const [first, second] = [reads.of(1), reads.of(2)]
    await first.hold(2 * SHARE, 'contents')
    const waiting = second.hold(2 * SHARE, 'contents')
    expect(await settled(waiting)).toBe('no')
    first.give(2 * SHARE)
    expect(await settled(waiting)).toBe('yes')
    second.end()
    second.give(2 * SHARE)
    first.end()
    expect(memory.held).toBe(0)
  })

  test('memory that becomes free goes first to the waiting database read of the client that holds least', async () => {
    const { memory, reads } = started()
    const body = new MemoryAllocation({ client: 'a body', key: '' })
    expect(memory.take(body, 100 * MIB)).toBe(true)
    await reads.of(1).hold(60 * MIB)
    const more = reads.of(1).hold(20 * MIB)
    const another = reads.of(2).hold(40 * MIB)
    expect([await settled(more), await settled(another)]).toEqual(['no', 'no'])
    memory.give(body, 20 * MIB)
    expect([await settled(more), await settled(another)]).toEqual(['no', 'yes'])
  })

  test('memory that becomes free for a database read as its client leaves is released once', async () => {
    const { memory, reads } = started()
    const [first, second] = [reads.of(1), reads.of(1)]
    await first.hold(SHARE)
    const holding = second.hold(MIB)
    // A WebSocket that closes ends all its calls in one turn.
    first.end()
    second.end()
    await expect(holding).rejects.toMatchObject(TOO_MANY)
    expect([memory.held, memory.usedBy(1)]).toEqual([0, 0])
  })

  test('a database read takes no memory if its client left while the read waited', async () => {
    const { memory, reads } = started()
    const body = new MemoryAllocation({ client: 1, key: '' })
    expect(memory.take(body, SHARE)).toBe(true)
    const read = reads.of(1)
    const holding = read.hold(MIB)
    read.end()
    await expect(holding).rejects.toMatchObject(TOO_MANY)
    memory.give(body, SHARE)
    expect(memory.held).toBe(0)
    await expect(read.hold(MIB)).rejects.toMatchObject(TOO_MANY)
  })

  test('memory that a database read took for a request with a body stays reserved for the request when the read ends', async () => {
    const { memory, reads } = started()
    const body = new MemoryAllocation({ client: 1, key: 1 })
    const read = reads.of(1, body)
    await read.hold(MIB)
    read.end()
    expect(body.bytes).toBe(MIB)
    memory.give(body, body.bytes)
    expect(memory.held).toBe(0)
  })
})

test('the next step of a database read is refused once the client of the read has left', async () => {
  const { reads } = started()
  const read = reads.of(1)
  await read.begin()
  await read.begin()
  read.end()
  await expect(read.begin()).rejects.toMatchObject(TOO_MANY)
})
