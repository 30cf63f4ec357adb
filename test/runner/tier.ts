import process from 'node:process'

/** Set by vitest.night.config.ts. */
const IS_NIGHT = process.env['TEST_TIER'] === 'night'
/** The share of a property test's cases that is tried by day. */
const DAY_SHARE = 1 / 5

/** The value for the day, which every change waits for, or the full one for the night. */
export function byTier<Value>(day: Value, night: Value): Value {
  return IS_NIGHT ? night : day
}

/**
 * The number of cases of a property test: `full` at night, a part of it by day; LAW_RUNS sets another number.
 */
export function lawRuns(full: number): number {
  const runs = process.env['LAW_RUNS']
  return runs === undefined ? byTier(Math.ceil(full * DAY_SHARE), full) : Number(runs)
}

/** The cases of a table: all of them at night, by day this many, spread evenly over the table. */
export function casesByTier<Case>(day: number, all: readonly Case[]): readonly Case[] {
  if (IS_NIGHT || all.length <= day) return all
  return Array.from({ length: day }, (_, index) => all[Math.floor((index * all.length) / day)] as Case)
}
