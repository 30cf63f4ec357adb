import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { parseAmount, quotaOfAmounts } from './amount.ts'

const DISPLAY = { quota_per_unit: 500_000, display: 'USD', usd_exchange_rate: 7.3 } as const

function read(given: string, display: Parameters<typeof quotaOfAmounts>[1] = DISPLAY) {
  let err = ''
  const stream = new Writable({
    write(chunk: Buffer, _, done) {
      err += chunk.toString()
      done()
    },
  })
  const shell = { env: {}, input: process.stdin, out: stream, err: stream, exitCode: 0 }
  const { quota } = quotaOfAmounts(shell, display, { quota: parseAmount(given) })
  return { quota, err }
}

test.each([
  ['10usd', 5_000_000, 'quota: 5000000 quota units ($10.00)\n'],
  ['0.50USD', 250_000, 'quota: 250000 quota units ($0.50)\n'],
  ['2500000', 2_500_000, 'quota: 2500000 quota units ($5.00)\n'],
  ['0', 0, ''],
])('the amount %s is %d quota units, and is shown in both units', (given, quota, err) => {
  expect(read(given)).toEqual({ quota, err })
})

test('a number that is less than a cent gets a warning that it is in quota units', () => {
  expect(read('5')).toEqual({
    quota: 5,
    err: 'quota: 5 quota units ($0.00001)\nWarning: 5 is in quota units; for dollars, write 5usd.\n',
  })
  expect(read('0.00001usd').err).not.toContain('Warning')
})

test('amounts are shown in dollars whatever the console shows', () => {
  for (const display of ['CNY', 'TOKENS'] as const)
    expect(read('1usd', { ...DISPLAY, display }).err).toBe('quota: 500000 quota units ($1.00)\n')
})

test.each(['$10', '10 usd', '10eur', '-1', '1.5', '', '1e3', '10usdusd'])(
  'the amount "%s" is refused with a message that says what is expected',
  (given) => expect(() => parseAmount(given)).toThrow('dollars such as 10usd'),
)

test('an amount that is not a whole number of quota units is refused, never rounded', () => {
  expect(() => read('0.000001usd')).toThrow('0.000001usd is not a whole number of quota units')
})
