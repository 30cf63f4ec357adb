import { expect, onTestFinished, test } from 'vitest'
import { LeaseClock, type ClockReading } from './lease-clock.ts'

/** A lease clock whose bank has just answered, on clocks that the test controls; times are in seconds. */
function answeredClock(): {
  readonly clock: LeaseClock
  /** Lets time pass, with a tick every second unless the process is suspended. */
  readonly pass: (seconds: number, options?: { readonly suspended: boolean }) => void
  readonly moveTimeOfDay: (seconds: number) => void
  readonly now: () => ClockReading
} {
  let monotonicMs = 1_000_000
  let aheadMs = 5_000_000
  const now = (): ClockReading => ({ monotonicMs, timeOfDayMs: monotonicMs + aheadMs })
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

test('a node may not spend borrowed quota before the database has answered it for the first time', () => {
  const clock = new LeaseClock()
  onTestFinished(() => clock.close())
  expect(clock.mayBeFenced).toBe(true)
})

test('a node may spend borrowed quota for 50 seconds after a request that the database answered', () => {
  const { clock, pass } = answeredClock()
  pass(50)
  expect(clock.mayBeFenced).toBe(false)
  pass(1)
  expect(clock.mayBeFenced).toBe(true)
})

test.each([2.001, 1_300, -2.001, -86_400])(
  'after the clock has jumped by %d seconds, a node may not spend borrowed quota until the database has answered',
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

test('after the clock has jumped by two seconds, a node may still spend borrowed quota', () => {
  const { clock, moveTimeOfDay } = answeredClock()
  moveTimeOfDay(2)
  expect(clock.mayBeFenced).toBe(false)
})

test('a node that was suspended for over five seconds may spend borrowed quota only after the database has answered', () => {
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
