import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { exactAmount, formatMoney, type MoneyDisplay, parseMoney } from './money.ts'

const USD: MoneyDisplay = { kind: 'USD', quotaPerUnit: 500_000, usdExchangeRate: '7.3' }
const CNY: MoneyDisplay = { ...USD, kind: 'CNY' }
const TOKENS: MoneyDisplay = { ...USD, kind: 'TOKENS' }

describe('a displayed amount', () => {
  test.each([
    [0, USD, '$0.00'],
    [500_000, USD, '$1.00'],
    [6_170_000, USD, '$12.34'],
    [617_000_000_000, USD, '$1,234,000.00'],
    [2106, USD, '$0.004212'],
    [250_000, USD, '$0.50'],
    [1, USD, '$0.000002'],
    [-250_000, USD, '-$0.50'],
    [500_000, CNY, '¥7.30'],
    [1234, TOKENS, '1,234'],
    ['172.5', USD, '$0.000345'],
    ['172.5', TOKENS, '172.5'],
  ])('an amount of %d units of %o is displayed as %s', (quota, display, text) => {
    expect(formatMoney(quota, display, 'en')).toBe(text)
  })

  test('a displayed amount is never rounded to zero', () => {
    expect(formatMoney(1, { ...USD, quotaPerUnit: 9_000_000 }, 'en')).toBe('<$0.000001')
  })
})

test('an exact amount of money is shown with all its digits', () => {
  expect(exactAmount(2106, USD)).toBe('0.004212')
  expect(exactAmount(9_007_199_254_740_991, USD)).toBe('18014398509.481982')
  expect(exactAmount(1, { ...USD, quotaPerUnit: 3 })).toBe('0.333333333333')
})

describe('a typed amount', () => {
  test.each([
    ['2.50', USD, 1_250_000],
    ['2.50', { ...USD, quotaPerUnit: 1000 }, 2500],
    [' 1,000 ', USD, 500_000_000],
    ['1,234,567.5', TOKENS, 1_234_568],
    ['.5', USD, 250_000],
    ['7.3', CNY, 500_000],
    ['12', TOKENS, 12],
    ['0.0000011', USD, 1],
  ])('the typed amount %s in %o is %d units', (text, display, quota) => {
    expect(parseMoney(text, display)).toBe(quota)
  })

  test.each([
    '',
    '-1',
    '1e3',
    '1.2.3',
    'free',
    '99999999999999999999',
    '2,50',
    '1,0000',
    '0,500',
    '00,500',
    '1000,000',
    ',500',
    '1.5,000',
  ])('a typed text that is not an amount of money is refused: %j', (text) => {
    expect(parseMoney(text, USD)).toBeUndefined()
  })
})

test('an exact amount of money that is typed in again gives the same quota', () => {
  fc.assert(
    fc.property(
      fc.nat({ max: 2 ** 45 }),
      fc.constantFrom(USD, TOKENS, { ...USD, quotaPerUnit: 1000 }),
      (quota, display) => parseMoney(exactAmount(quota, display), display) === quota,
    ),
  )
})
