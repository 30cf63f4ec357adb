import process from 'node:process'
import { test } from 'vitest'

/** Set by vitest.night.config.ts. */
const IS_NIGHT = process.env['TEST_TIER'] === 'night'
/** The share of a property test's cases that is tried by day. */
const DAY_SHARE = 1 / 20
/** Cases of a property test that are tried by day at least, unless a fifth of them is fewer. */
const MIN_DAY_RUNS = 25

/** The value for the day, which every change waits for, or the full one for the night. */
export function byTier<Value>(day: Value, night: Value): Value {
  return IS_NIGHT ? night : day
}

/**
 * The number of cases of a property test: `full` at night, a part of it by day; LAW_RUNS sets another number.
 */
export function lawRuns(full: number): number {
  const runs = process.env['LAW_RUNS']
  const day = Math.max(full * DAY_SHARE, Math.min(full / 5, MIN_DAY_RUNS))
  return runs === undefined ? byTier(Math.ceil(day), full) : Number(runs)
}

/**
 * The rows of a matrix: all of them at night, by day a part in which each pair of values of one row still occurs. Values
 * are compared by identity, so that rows share their objects.
 */
export function pairsByDay<Row extends readonly unknown[]>(rows: readonly Row[]): readonly Row[] {
  return byTier(coverPairs(rows), rows)
}

/** Takes rows with the most pairs that no row before them has, until there are no such pairs. */
function coverPairs<Row extends readonly unknown[]>(rows: readonly Row[]): readonly Row[] {
  const ids = new Map<unknown, number>()
  const idOf = (value: unknown): number => ids.get(value) ?? (ids.set(value, ids.size), ids.size - 1)
  const met = new Set<string>()
  const taken: Row[] = []
  /** Rows by the number of new pairs that they had when they were last looked at: it only becomes less. */
  const waiting: { readonly row: Row; readonly pairs: readonly string[] }[][] = []
  for (const row of rows) {
    const values = row.map((value, column) => `${column}:${idOf(value)}`)
    const pairs = values.flatMap((one, at) => values.slice(at + 1).map((other) => `${one} ${other}`))
    ;(waiting[pairs.length] ??= []).push({ row, pairs })
  }
  for (let count = waiting.length - 1; count > 0; count--)
    for (const { row, pairs } of waiting[count] ?? []) {
      const left = pairs.filter((pair) => !met.has(pair))
      if (left.length < count) (waiting[left.length] ??= []).push({ row, pairs: left })
      else {
        taken.push(row)
        for (const pair of left) met.add(pair)
      }
    }
  return taken
}

/** The cases of a table: all of them at night, by day this many, spread evenly over the table. */
export function casesByTier<Case>(day: number, all: readonly Case[]): readonly Case[] {
  if (IS_NIGHT || all.length <= day) return all
  return Array.from({ length: day }, (_, index) => all[Math.floor((index * all.length) / day)] as Case)
}

/** Declares no test. */
const declareNothing = (): void => {}

/**
 * Declares a test that only the night runs, because it takes long. What it protects must be neither money, the isolation of
 * users, redaction, the safety of kills, the laws of conversion, upgrades nor an official JavaScript client.
 */
export const atNight: typeof test = IS_NIGHT
  ? test
  : Object.assign(declareNothing as unknown as typeof test, {
      each: () => declareNothing,
      for: () => declareNothing,
    })
