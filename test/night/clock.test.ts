import process from 'node:process'
import { expect, test } from 'vitest'
import { HAS_FAKETIME, systemClock } from '../fixtures/moved-clock.ts'
import { HOUR, jump, MINUTE, MONTH } from '../faults/clock-jumps.ts'

if (!HAS_FAKETIME)
  console.log('left out: the system clock cannot be moved here (libfaketime is not installed)')

test.runIf(HAS_FAKETIME || process.env['CI'] === 'true')(
  'a system clock that jumps by an hour, a month or minutes, forward or back, only affects expiry',
  { timeout: 180_000 },
  async () => {
    const offsets = [HOUR, -HOUR, MONTH, -MONTH, 5 * MINUTE, -5 * MINUTE]
    const reports = await jump(systemClock(), offsets)
    console.log(reports)
    expect(reports).toHaveLength(offsets.length)
  },
)
