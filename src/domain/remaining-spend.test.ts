import { expect, test } from 'vitest'
import { leastRemaining } from './remaining-spend.ts'

test('the remaining amount of a key is the smallest one of its limits', () => {
  expect(leastRemaining({ key: 5, user: 3, group_budget: 4 })).toEqual({ left: 3, left_by: 'user' })
  expect(leastRemaining({ user: 3, key_budget: 2, user_budget: 1 })).toEqual({
    left: 1,
    left_by: 'user_budget',
  })
})

test('an absent limit does not count, and without any limit no remaining amount is reported', () => {
  expect(leastRemaining({ key: undefined, user: 7 })).toEqual({ left: 7, left_by: 'user' })
  expect(leastRemaining({})).toEqual({ left: null, left_by: null })
})

test('if a quota and a budget have equally little left, the quota is named as the limit; a negative amount counts as 0', () => {
  expect(leastRemaining({ key: -4, key_budget: 0 })).toEqual({ left: 0, left_by: 'key' })
  expect(leastRemaining({ user: 1, key_budget: -9 })).toEqual({ left: 0, left_by: 'key_budget' })
})
