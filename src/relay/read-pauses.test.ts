import { expect, test } from 'vitest'
import { ReadPauses } from './read-pauses.ts'

class FakeUpstream {
  isRead = true

  pause(): void {
    this.isRead = false
  }

  resume(): void {
    this.isRead = true
  }
}

test('an upstream is read again when the last reason not to is gone', () => {
  const upstream = new FakeUpstream()
  const pauses = new ReadPauses(upstream)
  pauses.begin('hold')
  pauses.begin('client')
  pauses.end('hold')
  expect([upstream.isRead, pauses.has('hold'), pauses.has('client')]).toEqual([false, false, true])
  pauses.end('client')
  expect(upstream.isRead).toBe(true)
})

test('a removed reason counts only from the next decision on', () => {
  const upstream = new FakeUpstream()
  const pauses = new ReadPauses(upstream)
  pauses.begin('count')
  pauses.remove('count')
  expect([upstream.isRead, pauses.has('count')]).toEqual([false, false])
  pauses.apply()
  expect(upstream.isRead).toBe(true)
})

test('a rest that is discarded is read whatever the reasons', () => {
  const upstream = new FakeUpstream()
  const pauses = new ReadPauses(upstream)
  pauses.begin('hold')
  pauses.discardRest()
  expect(upstream.isRead).toBe(true)
  pauses.begin('client')
  expect([upstream.isRead, pauses.has('client')]).toEqual([true, true])
})

test('an upstream whose chunks take long to read is read on in the next turn of the event loop', async () => {
  const upstream = new FakeUpstream()
  const pauses = new ReadPauses(upstream)
  pauses.noteWork(3)
  expect(upstream.isRead).toBe(true)
  pauses.noteWork(3)
  expect(upstream.isRead).toBe(false)
  await new Promise((resolve) => setImmediate(resolve))
  expect(upstream.isRead).toBe(true)
  pauses.noteWork(3)
  expect(upstream.isRead).toBe(true)
})
