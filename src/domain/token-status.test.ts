import { expect, test } from 'vitest'
import { statusAt } from './token-status.ts'

const [UNTIL, AT] = [1_800_000_000, 1_800_000_000_000]

test.each([
  ['enabled while it has time and quota', 1, UNTIL, false, 1, AT - 1, 1],
  ['expired from its very second on', 1, UNTIL, false, 1, AT, 3],
  ['never expired at -1', 1, -1, false, 1, AT, 1],
  ['exhausted at zero', 1, -1, false, 0, AT, 4],
  ['exhausted below zero', 1, -1, false, -5, AT, 4],
  ['never exhausted without a limit', 1, -1, true, -5, AT, 1],
  ['disabled whatever else', 2, UNTIL, false, 0, AT, 2],
  ['enabled again once its time was put off, whatever is stored', 3, -1, false, 1, AT, 1],
  ['enabled again once it has quota, whatever is stored', 4, -1, false, 1, AT, 1],
  ['expired, whatever else is stored', 4, UNTIL, false, 0, AT, 3],
] as const)(
  'the status of a token is right: %s',
  (_, status, expired_time, unlimited_quota, remain, nowMs, expected) => {
    expect(statusAt({ status, expired_time, unlimited_quota }, remain, nowMs)).toBe(expected)
  },
)
