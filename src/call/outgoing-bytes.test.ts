import { describe, expect, test } from 'vitest'
import { OutgoingBytes } from './outgoing-bytes.ts'

const COMMENT = Buffer.from(': hm\n\n')
const EVENT = Buffer.from('data: {}\n\n')

describe('bytes for the client', () => {
  test('comments to the client wait for the first event of a stream, and are sent with it in one piece', () => {
    const outgoing = new OutgoingBytes()
    outgoing.add(COMMENT, false)
    expect([outgoing.isDue, outgoing.take()]).toEqual([false, undefined])
    outgoing.add(EVENT, true)
    expect(outgoing.isDue).toBe(true)
    expect(outgoing.take()).toEqual(Buffer.concat([COMMENT, EVENT]))
    expect([outgoing.isDue, outgoing.take()]).toEqual([false, undefined])
  })

  test('bytes for the client are sent at once after the first event of a stream, without a copy', () => {
    const outgoing = new OutgoingBytes()
    outgoing.add(EVENT, true)
    outgoing.take()
    outgoing.add(COMMENT, true)
    expect(outgoing.take()).toBe(COMMENT)
  })

  test('bytes before the first event of a stream are held back up to 1 MiB, and then sent to the client', () => {
    const outgoing = new OutgoingBytes()
    outgoing.add(Buffer.alloc(1_048_576, ':'), false)
    expect(outgoing.isDue).toBe(false)
    outgoing.add(Buffer.from('\n'), false)
    expect(outgoing.take()).toHaveLength(1_048_577)
  })

  test('comments before the first event of a stream wait until they are released, and later ones do not wait', () => {
    const outgoing = new OutgoingBytes()
    outgoing.add(COMMENT, false)
    expect(outgoing.isDue).toBe(false)
    outgoing.release()
    expect(outgoing.take()).toBe(COMMENT)
    outgoing.add(COMMENT, false)
    expect(outgoing.take()).toBe(COMMENT)
  })

  test('comments that still wait for the first event of a stream when they are dropped are not sent to the client', () => {
    const outgoing = new OutgoingBytes()
    outgoing.add(COMMENT, false)
    outgoing.drop()
    outgoing.add(EVENT, true)
    expect(outgoing.take()).toBe(EVENT)
  })
})
