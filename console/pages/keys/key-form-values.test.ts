import { expect, test } from 'vitest'
import type { ApiKey } from '../../api/keys.ts'
import { mergeEdits } from '../../components/differences.ts'
import type { MoneyDisplay } from '../../components/money.ts'
import { keyFieldsOf, keyFormValues } from './key-form-values.ts'

const USD: MoneyDisplay = { kind: 'USD', quotaPerUnit: 500_000, usdExchangeRate: '1' }

/** The fields of a key that its form reads. */
function keyThatExpires(expired_time: number): ApiKey {
  const key: Partial<ApiKey> = {
    name: 'k',
    expired_time,
    unlimited_quota: true,
    budget: 0,
    budget_period: '',
    rate_limit_requests: 0,
    rate_limit_tokens: 0,
    rate_limit_parallel: 0,
    rate_limit_window: 60,
    model_limits_enabled: false,
    model_limits: '',
    allow_ips: null,
    group: '',
    guards: [],
    toolsets: [],
  }
  return key as ApiKey
}

test.each([
  [-1, 1_800_000_000],
  [1_900_000_000, 1_800_000_000],
  [1_900_000_000, -1],
])('a change of a key whose expiry another user has changed from %d to %d keeps that expiry', (was, now) => {
  const theirs = keyThatExpires(now)
  const base = keyFormValues(keyThatExpires(was), USD)
  const mine = { ...base, name: 'renamed' }
  const { merged, collisions } = mergeEdits({ base, mine, theirs: keyFormValues(theirs, USD) })
  expect(collisions).toEqual([])
  expect(keyFieldsOf(merged, USD, theirs)).toMatchObject({ name: 'renamed', expired_time: now })
})

test('two changes of the expiry of a key are asked about, also where both are times', () => {
  const [base, mine, theirs] = [1_900_000_000, 1_850_000_000, 1_800_000_000].map((time) =>
    keyFormValues(keyThatExpires(time), USD),
  )
  expect(mergeEdits({ base, mine, theirs } as Parameters<typeof mergeEdits>[0]).collisions).toEqual([
    'expiry',
  ])
})
