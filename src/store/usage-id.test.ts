import fc from 'fast-check'
import { expect, test } from 'vitest'
import { firstCallIdAt, startMsOfCall } from './usage-id.ts'

const MS = fc.integer({ min: 0, max: 2 ** 48 - 2 })

test('ids of calls sort by the time at which the calls began', () => {
  fc.assert(
    fc.property(MS, MS, (a, b) => {
      expect(Math.sign(a - b)).toBe(
        firstCallIdAt(a) === firstCallIdAt(b) ? 0 : firstCallIdAt(a) < firstCallIdAt(b) ? -1 : 1,
      )
    }),
  )
})

test('the id of a call contains when the call began, and sorts after the first possible id of that millisecond', () => {
  fc.assert(
    fc.property(MS, fc.uuid({ version: 7 }), (ms, uuid) => {
      const id = `${firstCallIdAt(ms)}${uuid.slice(13)}`
      expect(startMsOfCall(id)).toBe(ms)
      expect(id >= firstCallIdAt(ms)).toBe(true)
      expect(id < firstCallIdAt(ms + 1)).toBe(true)
    }),
  )
})

test.each(['', 'a', '0195B2C3-D4E5-7000', '0195b2c3d4e5', '0195b2c3-d4e5f'])(
  '%o is not accepted as the id of a call',
  (text) => {
    expect(startMsOfCall(text)).toBeUndefined()
  },
)
