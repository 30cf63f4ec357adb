import { expect, test } from 'vitest'
import { maskedFrame } from '../../../test/fixtures/web-socket-client.ts'
import { MessageMeter } from './message-meter.ts'

const FIRST_HALF = maskedFrame(0x01, Buffer.alloc(200))
const PING = maskedFrame(0x89, Buffer.from('ping'))
const SECOND_HALF = maskedFrame(0x80, Buffer.alloc(70_000))

test('the bytes of an unfinished message count with the heads of its frames, those of control frames between them do not', () => {
  const meter = new MessageMeter()
  expect(meter.count(FIRST_HALF)).toBe(false)
  expect(meter.unfinished).toBe(FIRST_HALF.length)
  expect(meter.count(PING)).toBe(false)
  expect(meter.unfinished).toBe(FIRST_HALF.length)
  expect(meter.count(SECOND_HALF.subarray(0, 69_000))).toBe(false)
  expect(meter.unfinished).toBe(FIRST_HALF.length + 69_000)
  expect(meter.count(SECOND_HALF.subarray(69_000))).toBe(true)
  expect(meter.unfinished).toBe(0)
})

test('an empty message has ended with its head', () => {
  const meter = new MessageMeter()
  expect(meter.count(maskedFrame(0x81, Buffer.alloc(0)))).toBe(true)
  expect(meter.unfinished).toBe(0)
})

test('the count does not depend on how the bytes are cut', () => {
  const bytes = Buffer.concat([FIRST_HALF, PING, SECOND_HALF, maskedFrame(0x81, Buffer.alloc(3)), FIRST_HALF])
  const [whole, single] = [new MessageMeter(), new MessageMeter()]
  whole.count(bytes)
  for (let at = 0; at < bytes.length; at++) single.count(bytes.subarray(at, at + 1))
  expect([whole.unfinished, single.unfinished]).toEqual([FIRST_HALF.length, FIRST_HALF.length])
})

test('a message in small reads or frames takes memory for each of them, until it ends', () => {
  const [whole, inReads, inFrames] = [new MessageMeter(), new MessageMeter(), new MessageMeter()]
  whole.count(FIRST_HALF)
  // One read and one frame.
  const overhead = whole.heldBytes - FIRST_HALF.length
  expect(overhead).toBeGreaterThan(0)
  for (const byte of FIRST_HALF) inReads.count(Buffer.of(byte))
  expect(inReads.heldBytes).toBe(FIRST_HALF.length + ((FIRST_HALF.length + 1) * overhead) / 2)
  inFrames.count(Buffer.concat([FIRST_HALF, ...Array<Buffer>(99).fill(maskedFrame(0x00, Buffer.of(0)))]))
  expect(inFrames.heldBytes).toBe(inFrames.unfinished + (101 * overhead) / 2)
  for (const meter of [whole, inReads, inFrames]) {
    const before = meter.heldBytes
    meter.count(PING)
    expect(meter.heldBytes).toBe(before)
    meter.count(SECOND_HALF)
    expect(meter.heldBytes).toBe(0)
  }
})
