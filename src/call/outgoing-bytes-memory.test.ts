import process from 'node:process'
import { expect, test } from 'vitest'
import { collectAll, collectYoung } from '../../test/fixtures/collect-young.ts'
import { OutgoingBytes } from './outgoing-bytes.ts'

test('the buffers of bytes that were sent to a client are freed without a full garbage collection', () => {
  const outgoing = new OutgoingBytes()
  collectAll()
  collectYoung()
  const before = process.memoryUsage().arrayBuffers
  const send = (): number => {
    outgoing.add(Buffer.alloc(8_000_000), true)
    return outgoing.take()?.length ?? 0
  }
  expect(send()).toBe(8_000_000)
  collectYoung()
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4_000_000)
})
