import { describe, expect, test } from 'vitest'
import { OutgoingBytes } from './outgoing-bytes.ts'

const COMMENT = Buffer.from(': hm\n\n')
const EVENT = Buffer.from('data: {}\n\n')

describe('bytes for the client', () => {
  test('bytes for the client wait for the first event, and are sent with it in one piece', () => {
    const outgoing = new OutgoingBytes()
    outgoing.add(COMMENT, false)
    expect([outgoing.isDue, outgoing.take()]).toEqual([false, undefined])
    outgoing.add(EVENT, true)
    expect(outgoing.isDue).toBe(true)
    expect(outgoing.take()).toEqual(Buffer.concat([COMMENT, EVENT]))
    expect([outgoing.isDue, outgoing.take()]).toEqual([false, undefined])
  })

  test('bytes for the client are sent at once after that, without a copy', () => {
    const outgoing = new OutgoingBytes()
    outgoing.add(EVENT, true)
    outgoing.take()
    outgoing.add(COMMENT, true)
    expect(outgoing.take()).toBe(COMMENT)
  })

  test('bytes for the client wait up to 4 KiB', () => {
    const outgoing = new OutgoingBytes()
    outgoing.add(Buffer.alloc(4_096, ':'), false)
    expect(outgoing.isDue).toBe(false)
    outgoing.add(Buffer.from('\n'), false)
    expect(outgoing.take()).toHaveLength(4_097)
  })

  test('bytes for the client wait for five seconds, and later comments do not wait', () => {
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

  test('bytes for the client that are dropped are not sent', () => {
    const outgoing = new OutgoingBytes()
    outgoing.add(COMMENT, false)
    outgoing.drop()
    outgoing.add(EVENT, true)
    expect(outgoing.take()).toBe(EVENT)
  })
})
