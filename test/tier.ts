import process from 'node:process'

/** Set by vitest.night.config.ts. */
const IS_NIGHT = process.env['TEST_TIER'] === 'night'
/** The share of a law's cases that the day tries. */
const DAY_SHARE = 1 / 5

/** The value of the day tier, which every change waits for, or the full one of the night tier. */
export function byTier<Value>(day: Value, night: Value): Value {
  return IS_NIGHT ? night : day
}

/** Cases that a law is tried on: `full` at night, a part of them by day; LAW_RUNS sets another number. */
export function lawRuns(full: number): number {
  const runs = process.env['LAW_RUNS']
  return runs === undefined ? byTier(Math.ceil(full * DAY_SHARE), full) : Number(runs)
}
