import { expect, onTestFinished, test } from 'vitest'
import { LeaseClock, type Moment } from './lease-clock.ts'

/** A lease clock whose bank has just answered, on clocks that the test controls; times are in seconds. */
function answeredClock(): {
  readonly clock: LeaseClock
  /** Lets time pass, with a tick every second unless the process is suspended. */
  readonly pass: (seconds: number, options?: { readonly suspended: boolean }) => void
  readonly moveTimeOfDay: (seconds: number) => void
  readonly now: () => Moment
} {
  let monotonicMs = 1_000_000
  let aheadMs = 5_000_000
  const now = (): Moment => ({ monotonicMs, timeOfDayMs: monotonicMs + aheadMs })
  const clock = new LeaseClock(now)
  onTestFinished(() => clock.close())
  clock.answered(now())
  return {
    clock,
    now,
    pass(seconds, { suspended } = { suspended: false }) {
      for (let second = 0; second < seconds; second += 1) {
        monotonicMs += 1_000
        if (!suspended) clock.tick()
      }
    },
    moveTimeOfDay: (seconds) => void (aheadMs += 1_000 * seconds),
  }
}

test('a node may not spend its leases before the database has answered for the first time', () => {
  const clock = new LeaseClock()
  onTestFinished(() => clock.close())
  expect(clock.mayBeFenced).toBe(true)
})

test('leases may be spent for 50 seconds after the request that the bank answered', () => {
  const { clock, pass } = answeredClock()
  pass(50)
  expect(clock.mayBeFenced).toBe(false)
  pass(1)
  expect(clock.mayBeFenced).toBe(true)
})

test.each([2.001, 1_300, -2.001, -86_400])(
  'after the time of day has moved by %d seconds, leases may not be spent until the bank has answered',
  (seconds) => {
    const { clock, moveTimeOfDay, now } = answeredClock()
    const before = now()
    moveTimeOfDay(seconds)
    expect(clock.mayBeFenced).toBe(true)
    // The answer to a request sent before the move does not count.
    clock.answered(before)
    expect(clock.mayBeFenced).toBe(true)
    clock.answered(now())
    expect(clock.mayBeFenced).toBe(false)
  },
)

test('after the time of day has moved by two seconds, leases may still be spent', () => {
  const { clock, moveTimeOfDay } = answeredClock()
  moveTimeOfDay(2)
  expect(clock.mayBeFenced).toBe(false)
})

test('after a process was suspended for more than five seconds, leases may not be spent until the bank has answered', () => {
  const { clock, pass, now } = answeredClock()
  pass(5, { suspended: true })
  expect(clock.mayBeFenced).toBe(false)
  pass(1)
  const before = now()
  pass(6, { suspended: true })
  expect(clock.mayBeFenced).toBe(true)
  clock.tick()
  expect(clock.mayBeFenced).toBe(true)
  clock.answered(before)
  expect(clock.mayBeFenced).toBe(true)
  clock.answered(now())
  expect(clock.mayBeFenced).toBe(false)
})
