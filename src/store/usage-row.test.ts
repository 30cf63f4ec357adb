import { expect, test } from 'vitest'
import { SETTLED_CALL } from '../../test/ledger/settled-call.ts'
import { serializeForOutbox } from './usage-row.ts'

test.each([
  [0, 0],
  [4, 4],
  [null, undefined],
])(
  'a first byte after %s ms is %s in the report of a call, which leaves out what is empty',
  (first_byte_ms, stated) => {
    const report = JSON.parse(serializeForOutbox({ ...SETTLED_CALL, first_byte_ms })) as Record<
      string,
      unknown
    >
    expect(report['first_byte_ms']).toBe(stated)
    expect(report).toMatchObject({ quota: 1, model: 'm' })
    expect(report).not.toHaveProperty('budgets')
    expect(report).not.toHaveProperty('output_tokens')
  },
)
