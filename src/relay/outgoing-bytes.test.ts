import { describe, expect, test } from 'vitest'
import { OutgoingBytes } from './outgoing-bytes.ts'

const COMMENT = Buffer.from(': hm\n\n')
const EVENT = Buffer.from('data: {}\n\n')

describe('bytes for the client', () => {
  test('waits for the first event, and goes on with it in one piece', () => {
    const outgoing = new OutgoingBytes()
    outgoing.add(COMMENT, false)
    expect([outgoing.isDue, outgoing.take()]).toEqual([false, undefined])
    outgoing.add(EVENT, true)
    expect(outgoing.isDue).toBe(true)
    expect(outgoing.take()).toEqual(Buffer.concat([COMMENT, EVENT]))
    expect([outgoing.isDue, outgoing.take()]).toEqual([false, undefined])
  })

  test('goes on at once after that, and as the very bytes', () => {
    const outgoing = new OutgoingBytes()
    outgoing.add(EVENT, true)
    outgoing.take()
    outgoing.add(COMMENT, true)
    expect(outgoing.take()).toBe(COMMENT)
  })

  test('waits up to 4 KiB', () => {
    const outgoing = new OutgoingBytes()
    outgoing.add(Buffer.alloc(4_096, ':'), false)
    expect(outgoing.isDue).toBe(false)
    outgoing.add(Buffer.from('\n'), false)
    expect(outgoing.take()).toHaveLength(4_097)
  })

  test('waits for five seconds, and comments that come later do not wait', () => {
    const outgoing = new OutgoingBytes()
    const beforeMs = performance.now()
    outgoing.add(COMMENT, false)
    const afterMs = performance.now()
    outgoing.tick(beforeMs + 4_999)
    expect(outgoing.isDue).toBe(false)
    outgoing.tick(afterMs + 5_000)
    expect(outgoing.take()).toBe(COMMENT)
    outgoing.add(COMMENT, false)
    expect(outgoing.take()).toBe(COMMENT)
  })

  test('is gone where it is dropped', () => {
    const outgoing = new OutgoingBytes()
    outgoing.add(COMMENT, false)
    outgoing.drop()
    outgoing.add(EVENT, true)
    expect(outgoing.take()).toBe(EVENT)
  })
})
