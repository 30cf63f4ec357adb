import fc from 'fast-check'
import { expect, test } from 'vitest'
import { REQUEST_LINE, requestLine } from './open-log.ts'

const value = fc.oneof(fc.string(), fc.double(), fc.boolean(), fc.constant(undefined))

test('the line about a request is the JSON text of all its members', () => {
  fc.assert(
    fc.property(
      fc.record({ id: fc.string(), ms: value }),
      fc.record({ model: value, stream: value, quota: value }, { requiredKeys: [] }),
      (facts, record) => {
        const [level, time] = [30, 1_790_000_000_000]
        expect(requestLine(level, time, facts, record)).toBe(
          `${JSON.stringify({ level, time, ...facts, ...record, msg: REQUEST_LINE })}\n`,
        )
      },
    ),
  )
})
