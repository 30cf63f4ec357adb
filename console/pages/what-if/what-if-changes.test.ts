import { expect, test } from 'vitest'
import { whatIfQuestionOf } from './what-if-changes.ts'

const NOW_MS = Date.UTC(2026, 10, 24, 12)

test("a what-if calculation at other prices is requested for the chosen period and account, in the gateway's format", () => {
  const question = whatIfQuestionOf(
    'last-month',
    [
      { kind: 'price', model: 'a', input: ' 1 ', output: '2,000.5', cached: '' },
      { kind: 'ratio', group: 'vip', ratio: '0.5' },
      { kind: 'model', from: 'a', to: 'b' },
      { kind: 'model', from: 'c', to: '' },
    ],
    NOW_MS,
    'Asia/Shanghai',
  )
  expect(question).toEqual({
    from: Date.UTC(2026, 8, 30, 16) / 1000,
    to: Date.UTC(2026, 9, 31, 16) / 1000,
    change: { prices: { a: { input: '1', output: '2000.5' } }, ratios: { vip: '0.5' }, models: { a: 'b' } },
  })
})

test('a what-if period of the last 7 days ends now', () => {
  const { from, to } = whatIfQuestionOf('7d', [], NOW_MS, 'UTC')
  expect(to - from).toBe(7 * 86_400 + 1)
})
