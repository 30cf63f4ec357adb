import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { requestMemory, usedUp } from '../../../test/samples/request-memory.ts'
import { ResponseMemory } from '../../limits/request-memory.ts'
import { EventResponse } from './event-response.ts'

const MIB = 1024 * 1024
const OWNER = { client: 1, key: 1 }

/** A stream whose client reads nothing unless `isRead`. Another answer is beyond the share of the user, if that is used up. */
function stream({ isRead = true, isUsedUp = false } = {}) {
  const memory = requestMemory()
  const giveBack = isUsedUp ? usedUp(memory) : () => {}
  const other = new ResponseMemory(memory, OWNER)
  if (isUsedUp) other.resize(MIB)
  const otherWait = other.whenEnough()
  const seen: string[] = []
  const response = new EventResponse(new ResponseMemory(memory, OWNER), {
    event: (json) => seen.push(`event of ${json.length}`) > 0 && isRead,
    whole() {},
    ended: () => seen.push('end'),
    broke: () => seen.push('break'),
  })
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  return { memory, giveBack, otherWait, response, seen }
}

/** The beginning of an event of more than `MIB` bytes. */
const begun = (): Buffer => Buffer.from(`data: ${'x'.repeat(MIB)}`)

test('an event that has not arrived completely counts as memory of its user until it has', () => {
  const { memory, response } = stream()
  expect(response.write(begun())).toBe(true)
  expect(memory.usedBy(1)).toBeGreaterThan(MIB - 65_536)
  response.write(Buffer.from('\n\n'))
  expect(memory.held).toBe(0)
})

test('an event without memory lets its writer wait until there is some', async () => {
  const { response, giveBack, otherWait, seen } = stream({ isUsedUp: true })
  await otherWait
  expect(response.write(begun())).toBe(false)
  response.whenDrained(() => seen.push('drained'))
  // Neither a client that has read everything nor one that reads nothing ends the wait.
  response.onDrain()
  response.destroyUnread()
  await nextTurn()
  expect(seen).toEqual([])
  giveBack()
  await nextTurn()
  expect(seen).toEqual(['drained'])
  expect(response.write(Buffer.from('\n\n'))).toBe(true)
  expect(seen).toEqual(['drained', `event of ${MIB}`])
})

test('an event counts until its client has read it', () => {
  const { memory, response } = stream({ isRead: false })
  expect(response.write(Buffer.concat([begun(), Buffer.from('\n\n')]))).toBe(false)
  expect(memory.usedBy(1)).toBeGreaterThan(0)
  response.onDrain()
  expect(memory.held).toBe(0)
})

test.each(['finished', 'aborted'] as const)('a response that is %s gives its memory back', (how) => {
  const { memory, response } = stream()
  response.write(begun())
  response.onConnectionEnd(how)
  expect(memory.held).toBe(0)
})

test.each(['write', 'end'] as const)(
  'an event of more than 32 MiB that comes by %s breaks off its response once the writer is done',
  async (by) => {
    const { memory, response, seen } = stream()
    for (let sent = 0; sent < 31; sent++) response.write(Buffer.alloc(MIB, 'x'))
    response[by](Buffer.alloc(2 * MIB, 'x'))
    expect([seen, response.isAborted]).toEqual([[], false])
    await nextTurn()
    expect([seen, response.isAborted, memory.held]).toEqual([['break'], true, 0])
  },
)
